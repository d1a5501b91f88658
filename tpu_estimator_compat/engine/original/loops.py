"""Training, evaluation and prediction by the original's loops, in one of TensorFlow's sessions.

A mode was captured already: the original's Estimator gets its graph and its spec.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.checkpoint.state import check_writable
from tpu_estimator_compat.engine.checkpoint.training_lock import training_in
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput
from tpu_estimator_compat.engine.modes import metrics, prediction, preparation, training
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.modes.evaluation import EvalRequest
from tpu_estimator_compat.engine.modes.prediction import PredictRequest
from tpu_estimator_compat.engine.modes.training import TrainRequest
from tpu_estimator_compat.engine.packages import tensorflow_estimator
from tpu_estimator_compat.environment import SESSION
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, WarmStartSettings

Hook = Any  # a tf.compat.v1.train.SessionRunHook
estimator: Any = tensorflow_estimator.module("estimator")
util: Any = tensorflow_estimator.module("util")


class _Original(estimator.Estimator):
    """The original's Estimator of one captured mode, whose user functions were called already."""

    def __init__(
        self, captured: CapturedMode, inputs: DeployedInput, warm_start: WarmStartSettings | None
    ):
        self._config = captured.config
        self._model_dir = captured.config.model_dir
        self._session_config = captured.config.session_config
        self._train_distribution = self._eval_distribution = None
        self._warm_start_settings = warm_start
        self._captured = captured
        self.input_hooks: list[Hook] = []
        if (iterator := inputs.called[0].initializable) is not None:
            self.input_hooks.append(util._DatasetInitializerHook(iterator))

    @property
    def global_step(self) -> Any:
        return tf.compat.v1.train.get_global_step(self._captured.graph)

    def spec(self) -> EstimatorSpec:
        """The spec of the mode, as the original takes it; may add operations: call it once."""
        captured, spec = self._captured, self._captured.spec
        train_op = spec.train_op
        if captured.implicit_updates and captured.topology.runtime != SESSION:  # as in steps
            train_op = tf.group(train_op, *captured.implicit_updates)
        found = EstimatorSpec(
            captured.mode,
            predictions=spec.predictions,
            loss=spec.loss,
            train_op=train_op,
            training_hooks=spec.hooks,
            training_chief_hooks=spec.chief_hooks,
            evaluation_hooks=spec.hooks,
            prediction_hooks=spec.hooks,
            scaffold=captured.functions.scaffold,
        )
        if captured.mode != ModeKeys.EVAL:
            return found
        pairs = {
            name: metrics.pair(name, each) for name, each in captured.functions.metrics.items()
        }
        return found._replace(eval_metric_ops=pairs)

    # The original's loops call these.

    def _create_and_assert_global_step(self, graph: tf.Graph) -> Any:
        return self.global_step

    def _get_features_and_labels_from_input_fn(self, input_fn: Any, mode: str) -> Any:
        return None, None, self.input_hooks

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        return self.spec()


def train(
    model: Any, captured: CapturedMode, deployed_input: DeployedInput, request: TrainRequest
) -> np.generic | None:
    """Trains until a limit, a hook or the data's end; returns the last loss, None without steps."""
    config, hooks = captured.config, _checked(request.hooks)
    if config.is_chief and config.model_dir:
        check_writable(config.model_dir)
    saves = bool(config.save_checkpoints_secs or config.save_checkpoints_steps)
    folder = config.model_dir if config.is_chief else None
    graph, fn = captured.graph, preparation.device_fn(config)
    with training_in(folder, makes=saves), captured.in_graph(), graph.device(fn):
        original = _Original(captured, deployed_input, request.warm_start)
        spec = original.spec()
        if request.batch_size is not None:  # a TPUEstimator logged its speed, and not its loss
            speed = training.speed_hooks(captured, request)
            spec = spec._replace(training_hooks=[*spec.training_hooks, *speed])
            original._config = config.replace(log_step_count_steps=None)
        limits = original._convert_train_steps_to_hooks(request.steps, request.max_steps)
        return original._train_with_estimator_spec(
            spec,
            [*original.input_hooks],
            [*hooks, *limits],
            original.global_step,
            request.saving_listeners,
        )


def evaluate(
    model: Any, captured: CapturedMode, deployed_input: DeployedInput, request: EvalRequest
) -> dict[str, Any]:
    """Evaluates, and writes the results as events; returns metric name to numpy value."""
    path, hooks = request.source.path, _checked(request.hooks)
    with captured.in_graph():
        original = _Original(captured, deployed_input, request.warm_start)
        hooks += original._convert_eval_steps_to_hooks(request.steps)
        scaffold, update, values, hooks = original._evaluate_build_graph(None, hooks, path)
        return original._evaluate_run(path, scaffold, update, values, hooks, request.output_dir)


def predict(
    model: Any, captured: CapturedMode, deployed_input: DeployedInput, request: PredictRequest
) -> Iterator[Any]:
    """Yields predictions until the data ends: examples or batches, as arrays or dicts of arrays."""
    path, config, hooks = request.source.path, captured.config, _checked(request.hooks)
    with captured.in_graph():
        original = _Original(captured, deployed_input, request.warm_start)
        original._maybe_warm_start(path)
        spec = original.spec()
        fetches = {
            "predictions": original._extract_keys(spec.predictions, request.predict_keys),
            "host_call": [],
        }
        creator = tf.compat.v1.train.ChiefSessionCreator(
            spec.scaffold, config.master, config.session_config, None, path
        )
    hooks = [*original.input_hooks, *hooks, *spec.prediction_hooks]
    with contextlib.closing(prediction.one_by_one(captured, creator, hooks, fetches)) as values:
        yield from prediction.examples(values, request)


def _checked(hooks: Sequence[Hook]) -> list[Hook]:
    callbacks = [type(hook) for hook in hooks if isinstance(hook, keras.callbacks.Callback)]
    if callbacks:
        raise NotImplementedError(
            f"Keras callbacks among the hooks ({callbacks}) need a keras.Model, and "
            'TensorFlow\'s sessions have none. Set RunConfig(runtime="tensorflow").'
        )
    return list(hooks)
