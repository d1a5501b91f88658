"""`Estimator`: checks the arguments of the public methods and calls the engine."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import RunConfig, session_config
from tpu_estimator_compat.config.arguments import (
    all_of,
    as_list,
    check_params,
    check_path,
    check_type,
)
from tpu_estimator_compat.engine.capture.user_functions import check_model_fn
from tpu_estimator_compat.engine.checkpoint.state import (
    CheckpointSource,
    latest,
    read_newest,
    read_newest_variable,
    warn_if_older,
)
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.hooks import HOOK_TYPES
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput
from tpu_estimator_compat.engine.inputs.input_mode import InputMode
from tpu_estimator_compat.engine.modes import evaluation, prediction, preparation, training
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.modes.model_modes import ModelModes
from tpu_estimator_compat.engine.modes.rules import InputFn, ModelFn, Rules
from tpu_estimator_compat.engine.original import choice
from tpu_estimator_compat.engine.topology.chosen_topology import (
    check_steps,
    join_cluster,
    takes_session,
)
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.estimator import finishing
from tpu_estimator_compat.estimator.construction import check_overrides, with_model_dir
from tpu_estimator_compat.estimator.exporting import Exporting
from tpu_estimator_compat.keras_model import calls
from tpu_estimator_compat.keras_model.model import ModelFnModel
from tpu_estimator_compat.spec import (
    EstimatorSpec,
    ModeKeys,
    WarmStartSettings,
    default_warm_start_settings,
)

Hook = Any  # a tf.compat.v1.train.SessionRunHook


class Estimator(Exporting):
    """Trains, evaluates, predicts and exports with a legacy model_fn.

    Args:
      model_fn: function that takes `features`, and any of `labels`, `mode`, `params` and `config`;
        returns an EstimatorSpec.
      model_dir: directory of checkpoints and events. None for the config's, or a temporary one.
      config: a `RunConfig`; None for defaults.
      params: hyperparameters; model_fn and input_fn get deep copies.
      warm_start_from: path of a checkpoint or SavedModel, or `WarmStartSettings`; used if model_dir
        has no checkpoint.

    Raises:
      ValueError: model_fn takes other arguments, the config is of another type, model_dir
        contradicts the config's, or a subclass overrides members.
      TypeError: model_fn is not callable, `params` is not a dict, or `model_dir` is not a path.
      NotImplementedError: a subclass overrides a method that only the original called.

    Example:
      >>> estimator = Estimator(model_fn, "model").train(input_fn, steps=1)
      >>> float(estimator.get_variable_value("w"))
      3.0
    """

    @calls.observed
    def __init__(
        self,
        model_fn: ModelFn | None,
        model_dir: str | os.PathLike[str] | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: str | os.PathLike[str] | WarmStartSettings | None = None,
    ):
        # Called on the class, as in the original: some scripts replace it by a static method.
        type(self)._assert_members_are_not_overridden(self)
        self._config = with_model_dir(config, model_dir)
        self._model_dir: str = (
            self._config.model_dir or ""
        )  # never empty: with_model_dir fills it in
        self._session_config = self._config.session_config
        self._train_distribution = self._config.train_distribute  # for subclasses, as the original
        self._eval_distribution = self._config.eval_distribute
        logging.info("Using config: %s", vars(self._config))
        if not takes_session(self._config):
            session_config.warn_of_idle_fields(self._config.session_config)
        check_params(params, settable=False)
        self._model_fn = check_model_fn(model_fn, params)
        self._params = copy.deepcopy({} if params is None else params)
        self._train_spec: Any = None
        self._config = join_cluster(self._config, tpu_semantics=self._use_tpu)
        self._warm_start_settings = default_warm_start_settings(warm_start_from)

    @property
    def model_dir(self) -> str:
        """Directory of checkpoints and events."""
        return self._model_dir

    @property
    def config(self) -> RunConfig:
        """A deep copy of the configuration."""
        return copy.deepcopy(self._config)

    @property
    def params(self) -> Any:
        """A deep copy of the hyperparameters."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """model_fn with `params` bound: a function of features, labels, mode and config."""

        def public_model_fn(features, labels, mode, config):
            rules = dataclasses.replace(self._mode_rules, config=config)
            return rules.call_for_export(features, labels, mode)

        return public_model_fn

    def latest_checkpoint(self) -> str | None:
        """Path of the newest checkpoint in model_dir, or None; warns if a newer one is missing."""
        path = latest(self._model_dir)
        warn_if_older(path, self._model_dir)
        return path

    def get_variable_names(self) -> list[str]:
        """Names of all variables in the newest checkpoint.

        Raises:
          ValueError: there is no checkpoint.
        """
        return read_newest(
            self._model_dir, lambda path: [name for name, _ in tf.train.list_variables(path)]
        )

    def get_variable_value(self, name: str) -> np.ndarray:
        """Value of a variable in the newest checkpoint.

        Args:
          name: the variable's name, without `:0`.

        Raises:
          ValueError: there is no checkpoint.
          TypeError: `name` is no string.
          tf.errors.NotFoundError: the checkpoint has no such variable.
        """
        check_type(name, "`name`", str, "string")
        return read_newest_variable(self._model_dir, name)

    def eval_dir(self, name: str | None = None) -> str:
        """Directory of evaluation events: `eval`, or `eval_<name>`."""
        if name:
            check_type(name, "`name`", str, "string")
        return os.path.join(self._model_dir, f"eval_{name}" if name else "eval")

    @calls.observed
    def train(
        self,
        input_fn: InputFn,
        hooks: Sequence[Hook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[tf.compat.v1.train.CheckpointSaverListener] | None = None,
    ) -> Estimator:
        """Trains from the newest checkpoint, or from initial values if there is none.

        Args:
          input_fn: returns a Dataset or tensors of features, or of (features, labels).
          hooks: session hooks, called when TF1 sessions called them, and Keras callbacks.
          steps: the number of steps to add; exclusive with `max_steps`.
          max_steps: the global step to reach. None for both: until the data ends.
          saving_listeners: called before and after every checkpoint.

        Returns:
          This estimator.

        Raises:
          ValueError: both limits, one that is not positive, or a bad model_fn or input.
          TypeError: a hook or listener of another type, a number of steps that is no number (or
            no int, with `use_tpu=True`), or an input_fn that is not callable.
        """
        training.check_task(self._config)
        rules = self._mode_rules
        rules.check_train_limits(steps, max_steps)
        request_hooks, listeners = _checked_hooks(hooks), _checked_listeners(saving_listeners)
        input_mode = preparation.resolve(rules, ModeKeys.TRAIN)
        if training.is_reached(max_steps, self._model_dir, input_mode.topology):
            logging.info("Skipping training since max_steps has already saved.")
            return self
        with eager.eager_mode():
            prepared = self._prepared(rules, input_fn, input_mode)
            self._train_spec = prepared[2].element_spec
            request = training.TrainRequest(
                hooks=request_hooks,
                saving_listeners=listeners,
                steps=steps,
                max_steps=max_steps,
                warm_start=self._warm_start_settings,
                loop=rules.loop(input_mode.topology),
                batch_size=input_mode.batch_size,
            )
            loss = choice.train(prepared, request)
        logging.info("Loss for final step: %s.", loss)
        return self

    @calls.observed
    def evaluate(
        self,
        input_fn: InputFn,
        steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Evaluates a checkpoint.

        Args:
          input_fn: returns a Dataset or tensors of features, or of (features, labels).
          steps: the number of steps; None for all of the data.
          hooks: session hooks, called when TF1 sessions called them, and Keras callbacks.
          checkpoint_path: the checkpoint to evaluate; None for the newest one, or initial values if
            there is none.
          name: name of this evaluation; part of the directory of its events.

        Returns:
          Metric name to numpy scalar, with `loss` (mean over steps) and `global_step`.

        Raises:
          ValueError: `steps` is not positive, or a bad model_fn or input.
        """
        rules = self._mode_rules
        rules.check_eval_steps(steps)
        source = self._source_for("evaluate", checkpoint_path)
        request = self._eval_request(steps, hooks, source, name)
        with eager.eager_mode():
            prepared = self._prepared(rules, input_fn, preparation.resolve(rules, ModeKeys.EVAL))
            return choice.evaluate(prepared, request)

    @calls.observed
    def predict(
        self,
        input_fn: InputFn,
        predict_keys: Sequence[str] | None = None,
        hooks: Sequence[Hook] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yields predictions for all of the data.

        Args:
          input_fn: returns a Dataset or tensors of features; labels are dropped.
          predict_keys: names of the predictions to yield; None for all.
          hooks: session hooks, called when TF1 sessions called them, and Keras callbacks.
          checkpoint_path: the checkpoint to use; None for the newest one, or initial values if
            there is none.
          yield_single_examples: whether to yield examples one by one, not whole batches.

        Yields:
          Arrays, or dicts of arrays.

        Raises:
          ValueError: unknown `predict_keys`, unequal lengths, or a bad model_fn or input.
        """
        request_hooks = _checked_hooks(hooks)
        source = self._source_for("predict", checkpoint_path)
        if predict_keys is not None:
            given = isinstance(predict_keys, Iterator)  # which could be read for one name only
            predict_keys = list(predict_keys) if given else predict_keys
            check_type(predict_keys, "predict_keys", Collection, "a list of names")
        with eager.eager_mode():
            rules = self._mode_rules
            prepared = self._prepared(rules, input_fn, preparation.resolve(rules, ModeKeys.PREDICT))
        request = prediction.PredictRequest(
            hooks=request_hooks,
            predict_keys=predict_keys,
            source=source,
            warm_start=self._warm_start_settings,
            yield_single_examples=yield_single_examples,
        )
        yield from choice.predict(prepared, request)

    def keras_model(self, input_fn: InputFn | None = None) -> ModelFnModel:
        """The `keras.Model` behind this estimator, for `fit`, `evaluate` and `predict`.

        It starts from the newest checkpoint of model_dir, or from initial values. `fit` writes a
        checkpoint at its end, from which `train` continues.

        Args:
          input_fn: gives the signature of the training data, so that the variables exist at once.
            None for the signature of the last `train`, or of the first data that the model gets.

        Returns:
          A compiled model: optimizer, loss and metrics are model_fn's own.
        """
        check_steps(self._config, {"keras_model()": True})
        rules = self._mode_rules
        input_mode = preparation.resolve(rules, ModeKeys.TRAIN)
        if input_fn is not None:
            self._train_spec = preparation.element_spec(rules, input_fn, input_mode)
        model = self._new_model(rules, input_mode.topology)
        model.compile_once()
        if self._train_spec is not None:
            model.build_mode(ModeKeys.TRAIN, self._train_spec)
        return model

    def _new_model(self, rules: Rules, topology: Topology) -> ModelFnModel:
        modes = ModelModes(rules, topology, self._warm_start_settings)
        loop = rules.loop(topology)
        steps = loop.value if loop and loop.unit == "count" else 1
        return ModelFnModel(modes, steps_per_execution=steps, export=self._export_live)

    @calls.observed
    def _prepared(
        self, rules: Rules, input_fn: InputFn, input_mode: InputMode
    ) -> tuple[ModelFnModel, CapturedMode, DeployedInput]:
        model = self._new_model(rules, input_mode.topology)
        return model, *preparation.prepare(rules, input_fn, input_mode, model.modes.store)

    # Subclasses, and scripts with graphs of their own, call these methods by the original's names.

    def _assert_members_are_not_overridden(self) -> None:
        check_overrides(Estimator, self)

    def _create_global_step(self, graph: tf.Graph) -> Any:
        return tf.compat.v1.train.create_global_step(graph)

    _create_and_assert_global_step = _create_global_step

    # Overridden by TPUEstimator.

    _use_tpu = False
    _marks_finished = False

    @property
    def _mode_rules(self) -> Rules:
        """The rules of one call: made anew, because scripts change attributes of estimators."""
        return Rules(self._model_fn, self._params, self._config)

    def _eval_request(
        self,
        steps: int | None,
        hooks: Sequence[Hook] | None,
        source: CheckpointSource,
        name: str | None,
    ) -> evaluation.EvalRequest:
        return evaluation.EvalRequest(
            hooks=_checked_hooks(hooks),
            steps=steps,
            source=source,
            warm_start=self._warm_start_settings,
            output_dir=self.eval_dir(name),
        )

    def _source_for(self, action: str, checkpoint_path: str | None) -> CheckpointSource:
        if checkpoint_path is not None:
            check_path(checkpoint_path, "checkpoint_path")
        if checkpoint_path:
            return CheckpointSource(checkpoint_path, None)
        path = latest(self._model_dir)
        if not path:
            logging.info(
                "Could not find trained model in model_dir: %s, running initialization to %s.",
                self._model_dir,
                action,
            )
        return CheckpointSource(path, self._model_dir if path else None)


def _checked_hooks(hooks: Sequence[Hook] | None) -> list[Hook]:
    hooks = as_list(hooks, "hooks", "SessionRunHook")
    return all_of(HOOK_TYPES, hooks, "Hooks must be a SessionRunHook")


def _checked_listeners(listeners):
    listeners = as_list(listeners, "saving_listeners", "CheckpointSaverListener")
    wanted = tf.compat.v1.train.CheckpointSaverListener
    return all_of(wanted, listeners, "saving_listeners must be a list of CheckpointSaverListener")


calls.innermost.update(dict.fromkeys(("train", "evaluate", "predict"), finishing.finish))
