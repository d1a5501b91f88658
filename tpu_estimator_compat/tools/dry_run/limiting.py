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
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from tpu_estimator_compat.engine.checkpoint import global_step_in
from tpu_estimator_compat.engine.hooks.step_limit import StepLimit
from tpu_estimator_compat.engine.modes import evaluation, prediction, training
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
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
        stack.enter_context(wrapped(training, "train", _training(recorder)))
        # A reached max_steps would make no steps.
        stack.enter_context(replaced(training, is_reached=lambda *unused: False))
        stack.enter_context(replaced(training, StepLimit=_counting(recorder)))
        stack.enter_context(wrapped(evaluation.Evaluation, "__init__", _evaluation(recorder)))
        predicting = _prediction(recorder, whole_predictions)
        stack.enter_context(wrapped(prediction, "predict", predicting))
        stack.enter_context(wrapped(schedule._Evaluator, "__init__", _final))
        for name, limit in _KERAS.items():
            limit = _none if whole_predictions and name == "predict" else limit
            stack.enter_context(wrapped(ModelFnModel, name, _keras(recorder, name, limit)))
        yield


def _training(recorder: Recorder) -> Callable[[Function], Function]:
    def around(train: Function) -> Function:
        def function(
            model: Any, captured: CapturedMode, data: Any, request: training.TrainRequest
        ) -> Any:
            _describe(recorder, captured, [*request.hooks, *request.saving_listeners])
            steps = _steps(request, captured.config.model_dir)
            short = dataclasses.replace(request, steps=steps, max_steps=None)
            loss = train(model, captured, data, short)
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


def _counting(recorder: Recorder) -> type[StepLimit]:
    class Counting(StepLimit):
        def after_run(self, steps: int, global_step: int) -> None:
            if call := recorder.current():
                call.steps += steps
            super().after_run(steps, global_step)

    return Counting


def _evaluation(recorder: Recorder) -> Callable[[Function], Function]:
    def around(init: Function) -> Function:
        def function(
            self: Any, model: Any, captured: CapturedMode, data: Any, request: Any
        ) -> None:
            call, hooks = recorder.current(), request.hooks
            if call is not None and call.call == "evaluate":  # not an in-memory evaluator's
                _describe(recorder, captured, hooks)
                hooks = [*hooks, _Counted(call)]
            short = dataclasses.replace(request, steps=1, hooks=hooks)
            init(self, model, captured, data, short)

        return function

    return around


def _prediction(recorder: Recorder, whole: bool) -> Callable[[Function], Function]:
    def around(predict: Function) -> Function:
        def function(model: Any, captured: CapturedMode, data: Any, request: Any) -> Iterator[Any]:
            _describe(recorder, captured, request.hooks)
            call = recorder.current()
            ours = [*([_Counted(call)] if call else []), *([] if whole else [_OneRun()])]
            hooks = [*request.hooks, *ours]
            return predict(model, captured, data, dataclasses.replace(request, hooks=hooks))

        return function

    return around


class _Counted(tf.compat.v1.train.SessionRunHook):
    """Counts a session's finished runs as the call's steps: empty data gives no steps."""

    def __init__(self, call: Call):
        self._call = call

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_context, run_values
        self._call.steps += 1


class _OneRun(tf.compat.v1.train.SessionRunHook):
    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        run_context.request_stop()


def _final(init: Function) -> Function:
    """With `max_steps`, makes each evaluation the final one, so that all exporters run."""

    def function(self: Any, estimator: Any, spec: Any, max_steps: int | None) -> None:
        init(self, estimator, spec, max_steps and 1)

    return function


def _describe(recorder: Recorder, captured: CapturedMode, hooks: list[Any]) -> None:
    call = recorder.current()
    if call is None:
        return
    call.replicas = captured.topology.num_replicas
    spec = captured.spec
    everyone = [*hooks, *spec.hooks, *(spec.chief_hooks if captured.mode == "train" else ())]
    names = dict.fromkeys(type(hook).__name__ for hook in everyone)
    call.hooks = tuple(name for name in names if not name.startswith("_"))  # without our own


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
