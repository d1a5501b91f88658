"""The `keras.Model` behind an estimator: Keras' own loops around the captured graph's steps.

`fit`, `evaluate` and `predict` are Keras'. The functions that they call run `steps_per_execution`
steps per call, and never more than are left.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import check_positive_integer
from tpu_estimator_compat.config.arguments import as_list
from tpu_estimator_compat.engine.checkpoint.state import check_writable, latest
from tpu_estimator_compat.engine.checkpoint.training_lock import training_in
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.graph.sources import with_lines
from tpu_estimator_compat.engine.hooks.preemption import Preemption, PreemptionCallback
from tpu_estimator_compat.engine.loop.replica_runner import ReplicaRunner
from tpu_estimator_compat.engine.modes.model_modes import ModelModes
from tpu_estimator_compat.engine.step.program import StepProgram
from tpu_estimator_compat.keras_model import calls, elements, optimizer_view, switches
from tpu_estimator_compat.keras_model.adopted import AdoptedVariable, GraphMetric
from tpu_estimator_compat.keras_model.callbacks import HostCallCallback, RemainingSteps, StepBar
from tpu_estimator_compat.keras_model.prediction import Prediction
from tpu_estimator_compat.keras_model.saving import Export, SavedVariables
from tpu_estimator_compat.spec import ModeKeys


class ModelFnModel(SavedVariables):
    """A model whose steps are those of a legacy model_fn, as `Estimator.keras_model()` returns.

    In `Estimator.train`, `evaluate` and `predict`, a Keras callback among the hooks finds the
    call's model as `self.model`. The variables are those of the captured graph, with their TF1
    names as paths; slots and `global_step` are non-trainable.

    Args:
      modes: the steps of all modes, on one set of variables.
      steps_per_execution: steps per call of the train and test functions, until `compile`.
      export: writes a SavedModel.

    Example:
      >>> model = Estimator(model_fn, "model").keras_model(input_fn)
      >>> history = model.fit(input_fn(), steps_per_epoch=1, verbose=0)
      >>> float(model.variables[0])
      3.0
    """

    def __init__(self, modes: ModelModes, *, steps_per_execution: int, export: Export):
        super().__init__(name="model_fn_model")
        self.modes = modes
        self._export = export
        topology = modes.topology
        self._model_dir = modes.config.model_dir
        self._alone = modes.is_alone
        self._fed_hosts = len(topology.hosts)
        self._per_batch = modes.replicas_per_element
        of_strategy = topology.strategy.num_replicas_in_sync
        self._distribute_strategy = topology.strategy if of_strategy > 1 else None
        self.train_function: Any = None
        self.test_function: Any = None
        self.predict_function: Any = None
        self._prediction = Prediction(modes, self.build_mode)
        self._remaining = RemainingSteps()
        self._eval_metrics: dict[str, GraphMetric] = {}
        self._adopted: set[str] = set()
        self._in_loop = self._fits = False
        self._optimizer_view: optimizer_view.OptimizerView | None = None
        self._nan_step: int | None = None  # first step with a NaN loss in the last `fit`
        self.built = True
        self._steps_at_first = steps_per_execution

    @functools.cached_property
    def _loss(self) -> keras.metrics.Metric:
        with self.modes.topology.strategy.scope():
            return keras.metrics.Mean(name="loss")

    def compile(self, steps_per_execution: int = 1, **kwargs: Any) -> None:
        """Sets how many steps Keras runs per call; model_fn defines the computation.

        Args:
          steps_per_execution: steps between two callbacks; "auto" lets Keras choose.
          **kwargs: ignored; an optimizer, loss or metrics are an error.

        Raises:
          ValueError: an optimizer, loss or metrics, or a number of steps below 1.
          TypeError: `steps_per_execution` is not an int.
        """
        own = sorted(k for k, v in kwargs.items() if v is not None and k in _MODEL_FN_BRINGS)
        if not isinstance(steps_per_execution, int | float) and steps_per_execution != "auto":
            own.append("optimizer")  # the first argument of other models' compile
        if own:
            raise ValueError(
                f"compile() got {own}, but optimizer, loss and metrics come from the model_fn. "
                "Change them there, or rewrite the model as a native keras.Model."
            )
        if steps_per_execution != "auto":  # "auto": Keras tunes the number
            check_positive_integer(steps_per_execution, "steps_per_execution")
        super().compile(optimizer=None, steps_per_execution=steps_per_execution, jit_compile=False)

    def compile_once(self) -> None:
        """Compiles with the estimator's number of steps, unless the model is compiled: costly."""
        if not self.compiled:
            self.compile(steps_per_execution=self._steps_at_first)

    @property
    def metrics(self) -> list[keras.metrics.Metric]:
        """The mean loss, and every metric of model_fn after its first evaluation."""
        return [self._loss, *self._eval_metrics.values()]

    @property
    def optimizer(self) -> optimizer_view.OptimizerView:
        """model_fn's optimizer: its `learning_rate`, and the global step as `iterations`.

        An assigned rate replaces model_fn's from the next step on, in this model only; checkpoints
        do not hold it.
        """
        found = self._optimizer_view
        if not isinstance(found, optimizer_view.OneRate):
            self._optimizer_view = found = optimizer_view.view(self.modes)
        return found

    @optimizer.setter
    def optimizer(self, none: None) -> None:
        """Does nothing: Keras' compile assigns None."""

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        """Captures the training step, without a batch, before callbacks of `fit` can ask for it."""
        if self._fits and ModeKeys.TRAIN not in self.modes:
            data = iterator._distributed_dataset
            self.build_mode(ModeKeys.TRAIN, elements.replica_spec(data, self._per_batch))

    def call(self, features: Any, training: bool = False) -> Any:
        """Predictions for a batch of features.

        Args:
          features: the `features` of model_fn: a tensor or nested structure, batch first.
          training: must be False: a training step changes variables; use `fit`.

        Returns:
          A tensor or a dict of tensors.

        Raises:
          ValueError: `training` is True.
        """
        if training:
            raise ValueError("call(training=True) is not supported: use fit() to train.")
        features = tf.nest.map_structure(tf.convert_to_tensor, features)
        return self._prediction.of_batch(features)

    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        """The loss of one training step on this replica's `data`; call it in replica context."""
        return {"loss": self._program(ModeKeys.TRAIN).on_replica(data)[0]}

    def test_step(self, data: Any) -> dict[str, tf.Tensor]:
        """The loss of this replica's `data`; call it in replica context."""
        return {"loss": self._program(ModeKeys.EVAL).on_replica(data)[0]}

    def predict_step(self, data: Any) -> Any:
        """Predictions for this replica's `data`; call it in replica context."""
        outputs = self._program(ModeKeys.PREDICT).on_replica(data)
        return self.modes[ModeKeys.PREDICT].packed(outputs)

    def _program(self, mode: str) -> StepProgram:
        runner = self.modes[mode].ready_session.runner
        if not isinstance(runner, ReplicaRunner):
            raise NotImplementedError(
                'Single steps of a model with runtime="jax" cannot be built into a tf.function: '
                "use fit, evaluate and predict."
            )
        return runner.program

    def make_train_function(self, force: bool = False) -> Callable[[Any], dict[str, Any]]:
        """The function that `fit` calls once per `steps_per_execution` steps."""
        if self.train_function is None or force:
            self.train_function = self._looping_function(ModeKeys.TRAIN)
        return self.train_function

    def make_test_function(self, force: bool = False) -> Callable[[Any], dict[str, Any]]:
        """The function that `evaluate` calls once per `steps_per_execution` steps."""
        if self.test_function is None or force:
            self.test_function = self._looping_function(ModeKeys.EVAL)
        return self.test_function

    def make_predict_function(self, force: bool = False) -> Callable[[Sequence[Any]], Any]:
        """The function that `predict` calls with a list of batches."""
        if self.predict_function is None or force:
            self.predict_function = self._predict_batches
        return self.predict_function

    def _predict_batches(self, batches: Sequence[Any]) -> Any:
        predictions = self._prediction(batches)
        self._remaining.made(len(batches))
        return predictions

    def _check_is_free(self, mode: str) -> None:
        """Raises RuntimeError while a session runs the steps of `mode`: it must run all of them."""
        if self.modes.in_session == mode:
            raise RuntimeError(
                f"The {mode} steps of this model are made by the running call of the estimator "
                "whose hooks have the callback. Use estimator.keras_model() to make others."
            )

    def _looping_function(self, mode: str) -> Callable[[Any], dict[str, Any]]:
        def function(iterator: Any) -> dict[str, Any]:
            self._check_is_free(mode)
            iterator = elements.as_iterator(iterator)
            if mode not in self.modes:
                spec = elements.replica_spec(iterator, self._per_batch)
                self.build_mode(mode, spec)
            steps = self._remaining.within(self.steps_per_execution)
            session = self.modes[mode].ready_session
            session.runner.begin_loop()
            with with_lines(session.graph):
                result = session.runner.run(iterator, steps)
            if not self._in_loop or result.stopped_by_nan:  # else HostCallCallback waits for them
                session.finish_host_calls()
            self._remaining.made(result.steps)
            if not result.steps:
                raise StopIteration
            if result.stopped_by_nan:
                self._nan_step = session.global_step()
                self.stop_training = True
                logging.error("The loss of step %d is NaN: training stops.", self._nan_step)
            self._loss.update_state(result.loss_sum / result.steps, sample_weight=result.steps)
            shown = self.metrics if mode == ModeKeys.EVAL else [self._loss]
            return {m.name: m.result() for m in shown}

        return function

    @contextlib.contextmanager
    def _counted(self, fits: bool = False) -> Iterator[RemainingSteps]:
        """Sets a new step counter, which is also a callback, for one call of Keras' loops."""
        before = self._remaining, self._in_loop
        self._remaining, self._in_loop, self._fits = RemainingSteps(), True, fits
        try:
            yield self._remaining
        finally:
            self._remaining, self._in_loop = before
            self._fits = False

    def build_mode(self, mode: str, element_spec: Any) -> None:
        """Captures a mode for an element spec, if it is not yet captured; adopts its variables."""
        with eager.eager_mode():
            if mode not in self.modes:
                self.modes.build(mode, element_spec)
            self.adopt(mode)

    def adopt(self, mode: str) -> None:
        """Adopts the variables and metrics of a captured mode as Keras variables and metrics."""
        self.compile_once()
        ready = self.modes[mode]
        for name, trainable in ready.variables():
            if name not in self._adopted:
                self._adopted.add(name)
                self._track_variable(AdoptedVariable(self.modes.store, name, trainable))
        for name, read in ready.metric_readers().items():
            self._eval_metrics[name] = GraphMetric(name, read, ready.reset_metrics)

    def close(self) -> None:
        """Frees a call's variables, unless a callback has them: Keras makes reference cycles."""
        if not self._adopted:
            self.modes.store.close()
            del self.modes, self._prediction, self._optimizer_view

    @calls.of_keras(keras.Model.fit)
    def fit(self, *args: Any, callbacks: Any = None, **kwargs: Any) -> keras.callbacks.History:
        """Trains as `keras.Model.fit` does, from the newest checkpoint; ends with a checkpoint.

        SIGTERM and Ctrl-C end it as they end `Estimator.train`: after the current step, with a
        checkpoint. A NaN loss also ends it after its step, but without a checkpoint.

        Args:
          *args: as for `keras.Model.fit`; the data gives features, or (features, labels).
          callbacks: as for `keras.Model.fit`.
          **kwargs: as for `keras.Model.fit`.

        Returns:
          The history.

        Raises:
          ValueError: there is no data.
          TypeError: an element of `callbacks` is not a Keras callback.
          RuntimeError: a running call of an estimator executes the training steps of this model;
            KERAS_BACKEND is not tensorflow; eager execution is off.
          tf.errors.OpError: a checkpoint could not be written to model_dir.
        """
        self._check_is_free(ModeKeys.TRAIN)
        _check_call("fit", args, kwargs)
        if self._alone and self._model_dir:
            check_writable(self._model_dir)  # fit will write a checkpoint there
        self.modes.follow_checkpoint()
        self._nan_step = None
        writes_to = self._model_dir if self._alone else None
        computes_here = self.modes.topology.computes_here
        preempted = Preemption(computes_here=computes_here, listen=self._alone)
        with training_in(writes_to), preempted as preemption:
            with (
                self._counted(fits=True) as counter,
                self.modes.ending_early(preemption.interrupted),
            ):
                own = [HostCallCallback(self.modes), PreemptionCallback(preemption)]
                callbacks = _with(callbacks, counter, *own)
                history = super().fit(*args, callbacks=callbacks, **kwargs)
            if self._nan_step is not None:
                logging.error(
                    "fit ended with a NaN loss at step %d; nothing was saved. The model has the "
                    "values after that step; model_dir has %s.",
                    self._nan_step,
                    latest(self._model_dir) or "no checkpoint",
                )
            elif path := self.modes.save():
                logging.info("Saved %s after fit.", path)
        return history

    @calls.of_keras(keras.Model.evaluate)
    def evaluate(self, *args: Any, callbacks: Any = None, **kwargs: Any) -> Any:
        """Evaluates as `keras.Model.evaluate` does, with model_fn's own metrics.

        Args:
          *args: as for `keras.Model.evaluate`; so are `**kwargs`.
          callbacks: Keras callbacks; their test methods are called.

        Returns:
          The loss, a list of the loss and the metrics, or with `return_dict=True` a dict of them.

        Raises:
          ValueError, TypeError, RuntimeError: as for `fit`.
        """
        if isinstance(callbacks, keras.callbacks.CallbackList):  # fit calls this
            for callback in callbacks.callbacks:
                if isinstance(callback, RemainingSteps):
                    callback.set_validation_steps(kwargs.get("steps"))
            return super().evaluate(*args, callbacks=callbacks, **kwargs)
        self._check_is_free(ModeKeys.EVAL)
        _check_call("evaluate", args, kwargs)
        self.modes.follow_checkpoint()
        with self._counted() as counter:
            callbacks = _with(callbacks, counter, HostCallCallback(self.modes))
            return super().evaluate(*args, callbacks=callbacks, **kwargs)

    @calls.of_keras(keras.Model.predict)
    def predict(
        self, *args: Any, callbacks: Any = None, **kwargs: Any
    ) -> np.ndarray | dict[str, np.ndarray]:
        """Predicts as `keras.Model.predict` does.

        Raises:
          NotImplementedError: on a TPU pod, where Keras would return rows in another order.
        """
        if self._fed_hosts > 1:
            raise NotImplementedError(
                f"predict of a keras_model() on the {self._fed_hosts} hosts of a TPU pod: Keras "
                "deals the batches to the hosts in turn, and would return the rows in another "
                "order. Use Estimator.predict with per_host_input_for_training="
                "InputPipelineConfig.BROADCAST, or a TPU with one host."
            )
        _check_call("predict", args, kwargs)
        self.modes.follow_checkpoint()
        with self._counted() as counter:
            return super().predict(*args, callbacks=_with(callbacks, counter), **kwargs)


_MODEL_FN_BRINGS = frozenset({"optimizer", "loss", "loss_weights", "metrics", "weighted_metrics"})


def _with(callbacks: Any, counter: RemainingSteps, *own: keras.callbacks.Callback) -> Any:
    """The user's callbacks, after `counter` and `own`, and before a progress bar."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks.callbacks[:0] = [counter, *own]
        return callbacks
    if isinstance(callbacks, keras.callbacks.Callback):
        callbacks = [callbacks]
    given = as_list(callbacks, "callbacks", "keras.callbacks.Callback")
    for callback in given:
        if not isinstance(callback, keras.callbacks.Callback):
            raise TypeError(
                f"callbacks must be keras.callbacks.Callback, given: {callback!r}. Session hooks "
                "are for the estimator's own train, evaluate and predict."
            )
    bars = [each for each in given if isinstance(each, keras.callbacks.ProgbarLogger)]
    return [counter, *own, *given, *([] if bars else [StepBar(counter)])]


def _check_call(method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    switches.check(method)
    if (args[0] if args else kwargs.get("x")) is None:
        raise ValueError(
            f"{method}() got no data, x=None. Give a tf.data.Dataset, such as that of the input_fn,"
            " or arrays."
        )
