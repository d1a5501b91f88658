"""What a dry run changes in the arguments of calls: numbers of steps, and folders.

Trainings get two steps at most, evaluations one, predictions one batch. What an estimator would
refuse stays as it is, for its error.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config import TaskType
from tpu_estimator_compat.engine.checkpoint.state import global_step_in
from tpu_estimator_compat.estimator.estimator import Estimator
from tpu_estimator_compat.estimator.schedule import TrainSpec
from tpu_estimator_compat.keras_model.calls import Call
from tpu_estimator_compat.tools.dry_run.folders import Folders

STEPS = 2
"""The most training steps of a call."""


def shorten(call: Call, folders: Folders, *, whole_predictions: bool) -> None:
    """Changes the arguments of a call."""
    change = _SHORTER.get(call.name)
    if change and not (whole_predictions and call.name in _PREDICTIONS):
        change(call)
    if call.name in _MAKING:
        _own_model_dir(call.arguments, folders)
    redirect(call.arguments.get("hooks"), folders)
    own = dict.fromkeys(("export_dir_base", "path"), folders.own)
    for name, change_path in {**own, "checkpoint_path": folders.of_checkpoint}.items():
        if isinstance(path := call.arguments.get(name), str | bytes | os.PathLike):
            call.arguments[name] = change_path(os.fsdecode(path))


_MAKING = ("__init__", "model_to_estimator")
_PREDICTIONS = ("predict", "keras_model().predict")


def _own_model_dir(arguments: dict[str, Any], folders: Folders) -> None:
    config, model_dir = arguments.get("config"), arguments.get("model_dir")
    of_config = getattr(config, "model_dir", None)
    if isinstance(model_dir, os.PathLike):
        model_dir = os.fspath(model_dir)
    given = model_dir or of_config
    if not given:
        arguments["model_dir"] = folders.temporary()
    elif isinstance(given, str) and of_config in (None, given):
        arguments["model_dir"] = folders.own(given)
        if config is not None:
            arguments["config"] = config.replace(model_dir=arguments["model_dir"])


def _train(call: Call) -> None:
    """The steps that a call's own limits leave, at most two; two if they leave none."""
    left, max_steps = call.arguments.get("steps"), call.arguments.get("max_steps")
    call.owner._mode_rules.check_train_limits(left, max_steps)
    if max_steps is not None and max_steps != math.inf:
        left = max_steps - global_step_in(call.owner.model_dir)
    steps = min(left, STEPS) if left is not None and left > 0 else STEPS
    call.arguments |= {"steps": steps, "max_steps": None}


def _one_step(estimator: Any, call: Call) -> None:
    if isinstance(estimator, Estimator):
        estimator._mode_rules.check_eval_steps(call.arguments.get("steps"))
        call.arguments["steps"] = 1


class _OneRun(tf.compat.v1.train.SessionRunHook):
    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        run_context.request_stop()


def with_hook(call: Call, hook: tf.compat.v1.train.SessionRunHook) -> None:
    hooks = call.arguments.get("hooks") or ()
    if isinstance(hooks, Iterable):
        call.arguments["hooks"] = [*hooks, hook]


def redirect(hooks: Any, folders: Folders) -> None:
    """Has TensorFlow's hooks write to the dry run's folders, where they were given others."""
    for hook in hooks if isinstance(hooks, list | tuple) else ():
        for name in ("_checkpoint_dir", "_save_path", "_output_dir"):
            if isinstance(path := getattr(hook, name, None), str):
                setattr(hook, name, folders.within(path))


def _train_and_evaluate(call: Call) -> None:
    """With `max_steps`, makes the evaluation the final one, so that all exporters run."""
    spec, estimator = call.arguments["train_spec"], call.arguments["estimator"]
    if not isinstance(spec, TrainSpec) or not isinstance(estimator, Estimator):
        return
    if spec.max_steps and estimator.config.task_type == TaskType.EVALUATOR:
        call.arguments["train_spec"] = spec._replace(max_steps=1)  # any checkpoint has reached it
    elif spec.max_steps:
        step = global_step_in(estimator.model_dir)
        left = spec.max_steps - step
        short = step + (min(left, STEPS) if left > 0 else STEPS)
        call.arguments["train_spec"] = spec._replace(max_steps=short)


def _fit(call: Call) -> None:
    given = call.arguments
    given["epochs"] = given.get("initial_epoch", 0) + 1
    given["steps_per_epoch"] = min(given.get("steps_per_epoch") or STEPS, STEPS)
    if given.get("validation_data") is not None or given.get("validation_split"):
        given |= {"validation_steps": 1, "validation_freq": 1}


def _one_keras_step(call: Call) -> None:
    call.arguments["steps"] = 1


_SHORTER: dict[str, Callable[[Call], None]] = {
    "InMemoryEvaluatorHook": lambda call: _one_step(call.arguments["estimator"], call),
    "train": _train,
    "evaluate": lambda call: _one_step(call.owner, call),
    "predict": lambda call: with_hook(call, _OneRun()),
    "train_and_evaluate": _train_and_evaluate,
    "keras_model().fit": _fit,
    "keras_model().evaluate": _one_keras_step,
    "keras_model().predict": _one_keras_step,
}
