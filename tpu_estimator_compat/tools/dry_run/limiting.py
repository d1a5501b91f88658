"""Limits trainings to two steps, evaluations to one, and predictions to one batch.

The engine's functions are limited, so their callers, such as `train_and_evaluate` and the in-memory
evaluator, need no limit. Keras' loops get limits of their own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tpu_estimator_compat.engine.checkpoint import global_step_in
from tpu_estimator_compat.engine.modes import evaluation, prediction, training
from tpu_estimator_compat.engine.original import choice
from tpu_estimator_compat.estimator import schedule
from tpu_estimator_compat.keras_model.model import ModelFnModel
from tpu_estimator_compat.tools.dry_run.recording import Recorder
from tpu_estimator_compat.tools.dry_run.replacing import Function, replaced, wrapped
from tpu_estimator_compat.tools.dry_run.report import Call

STEPS = 2
"""The most training steps of a call."""


@contextlib.contextmanager
def limited(recorder: Recorder, *, whole_predictions: bool) -> Iterator[None]:
    """Within, calls of estimators are short, and tell the recorder what they do."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(wrapped(choice, "train", _training(recorder)))
        # A reached max_steps would make no steps.
        stack.enter_context(replaced(training, is_reached=lambda *unused: False))
        stack.enter_context(wrapped(choice, "evaluate", _evaluation(recorder)))
        stack.enter_context(wrapped(evaluation.Evaluation, "__init__", _in_memory))
        predicting = _prediction(recorder, whole_predictions)
        stack.enter_context(wrapped(choice, "predict", predicting))
        stack.enter_context(wrapped(schedule._Executor._Evaluator, "__init__", _final))
        for name, limit in _KERAS.items():
            limit = _none if whole_predictions and name == "predict" else limit
            stack.enter_context(wrapped(ModelFnModel, name, _keras(recorder, name, limit)))
        yield


def _training(recorder: Recorder) -> Callable[[Function], Function]:
    def around(train: Function) -> Function:
        def function(prepared: choice.Prepared, request: training.TrainRequest) -> Any:
            hooks = _described(recorder, prepared, request, request.saving_listeners)
            steps = _steps(request, prepared[1].config.model_dir)
            loss = train(
                prepared, dataclasses.replace(request, steps=steps, max_steps=None, hooks=hooks)
            )
            if (call := recorder.current()) and loss is not None:
                call.loss = float(loss)
            return loss

        return function

    return around


def _steps(request: training.TrainRequest, model_dir: str | None) -> int:
    """The steps that a call's own limits leave, at most two; two if they leave none."""
    left = request.steps
    if request.max_steps is not None and request.max_steps != math.inf:
        left = request.max_steps - global_step_in(model_dir)
    return min(left, STEPS) if left is not None and left > 0 else STEPS


def _evaluation(recorder: Recorder) -> Callable[[Function], Function]:
    def around(evaluate: Function) -> Function:
        def function(prepared: choice.Prepared, request: evaluation.EvalRequest) -> Any:
            hooks = _described(recorder, prepared, request)
            return evaluate(prepared, dataclasses.replace(request, steps=1, hooks=hooks))

        return function

    return around


def _in_memory(init: Function) -> Function:
    """Limits the in-memory evaluator's evaluations, which belong to no call of `evaluate`."""

    def function(self: Any, model: Any, captured: Any, data: Any, request: Any) -> None:
        init(self, model, captured, data, dataclasses.replace(request, steps=1))

    return function


def _prediction(recorder: Recorder, whole: bool) -> Callable[[Function], Function]:
    def around(predict: Function) -> Function:
        def function(
            prepared: choice.Prepared, request: prediction.PredictRequest
        ) -> Iterator[Any]:
            hooks = [*_described(recorder, prepared, request), *([] if whole else [_OneRun()])]
            return predict(prepared, dataclasses.replace(request, hooks=hooks))

        return function

    return around


class _Counted(tf.compat.v1.train.SessionRunHook):
    """Counts the steps of finished runs as the call's: empty data gives none."""

    def __init__(self, call: Call):
        self._call = call

    def steps_until_control(self, global_step: int) -> None:
        """Needs no control before another does."""

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        self._call.steps += max(1, getattr(run_context.session, "steps_last_run", 1))


class _OneRun(tf.compat.v1.train.SessionRunHook):
    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        run_context.request_stop()


def _final(init: Function) -> Function:
    """With `max_steps`, makes each evaluation the final one, so that all exporters run."""

    def function(self: Any, estimator: Any, spec: Any, max_steps: int | None) -> None:
        init(self, estimator, spec, max_steps and 1)

    return function


def _described(
    recorder: Recorder, prepared: choice.Prepared, request: Any, listeners: Sequence[Any] = ()
) -> list[Any]:
    """Tells the recorder of a call; returns its hooks, with one that counts steps."""
    call, captured = recorder.current(), prepared[1]
    if call is None:
        return list(request.hooks)
    call.replicas = captured.topology.num_replicas
    spec = captured.spec
    everyone = [*request.hooks, *listeners, *spec.hooks]
    everyone += spec.chief_hooks if captured.mode == "train" else ()
    names = dict.fromkeys(type(hook).__name__ for hook in everyone)
    call.hooks = tuple(name for name in names if not name.startswith("_"))  # without our own
    return [*request.hooks, _Counted(call)]


def _keras(
    recorder: Recorder, name: str, limit: Callable[[dict[str, Any]], dict[str, Any]]
) -> Callable[[Function], Function]:
    signature = inspect.signature(getattr(keras.Model, name))

    def around(method: Function) -> Function:
        def function(self: ModelFnModel, *args: Any, **kwargs: Any) -> Any:
            given = dict(signature.bind(self, *args, **kwargs).arguments)
            given |= given.pop("kwargs", {})
            given |= limit(given)
            call = recorder.current()
            if call is not None and call.call == f"keras_model().{name}":
                call.replicas = self.modes.topology.num_replicas
                call.steps = given.get("steps") or given.get("steps_per_epoch") or 0
                call.hooks = _names(given.get("callbacks"))
            return method(**given)

        return function

    return around


def _names(callbacks: Any) -> tuple[str, ...]:
    given = callbacks if isinstance(callbacks, list | tuple) else [callbacks] if callbacks else []
    return tuple(dict.fromkeys(type(callback).__name__ for callback in given))


def _none(given: dict[str, Any]) -> dict[str, Any]:
    del given
    return {}


def _fit(given: dict[str, Any]) -> dict[str, Any]:
    short = {"epochs": given.get("initial_epoch", 0) + 1}
    short["steps_per_epoch"] = min(given.get("steps_per_epoch") or STEPS, STEPS)
    if given.get("validation_data") is not None or given.get("validation_split"):
        short |= {"validation_steps": 1, "validation_freq": 1}
    return short


_KERAS: types.MappingProxyType[str, Callable[[dict[str, Any]], dict[str, Any]]] = (
    types.MappingProxyType(
        {
            "fit": _fit,
            "evaluate": lambda given: {"steps": 1},
            "predict": lambda given: {"steps": 1},
        }
    )
)
