"""`TrainSpec` and `EvalSpec`: the arguments of `train_and_evaluate`, checked and immutable."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from tpu_estimator_compat.config.arguments import (
    all_of,
    as_list,
    check_input_fn,
    check_number,
    check_steps,
)
from tpu_estimator_compat.engine.hooks import HOOK_TYPES
from tpu_estimator_compat.estimator.exporters import Exporter

InputFn = Callable[..., Any]


class _TrainSpecFields(NamedTuple):
    input_fn: InputFn
    max_steps: int | None
    hooks: tuple[Any, ...]
    saving_listeners: tuple[Any, ...]


class TrainSpec(_TrainSpecFields):
    """The training part of `train_and_evaluate`.

    Args:
      input_fn: returns a Dataset or tensors of features, or of (features, labels).
      max_steps: the global step to reach; None to train until the data ends.
      hooks: hooks of the training.
      saving_listeners: called before and after every checkpoint.

    Raises:
      ValueError: `max_steps` is not positive.
      TypeError: an argument of another type.

    Example:
      >>> TrainSpec(input_fn, max_steps=1000).max_steps
      1000
    """

    def __new__(
        cls,
        input_fn: InputFn,
        max_steps: int | None = None,
        hooks: Iterable[Any] | None = None,
        saving_listeners: Iterable[Any] | None = None,
    ) -> TrainSpec:
        check_input_fn(input_fn)
        check_steps(max_steps, "max_steps")
        return super().__new__(
            cls,
            input_fn=input_fn,
            max_steps=max_steps,
            hooks=_checked_hooks(hooks),
            saving_listeners=_checked_listeners(saving_listeners),
        )


class _EvalSpecFields(NamedTuple):
    input_fn: InputFn
    steps: int | None
    name: str | None
    hooks: tuple[Any, ...]
    exporters: tuple[Exporter, ...]
    start_delay_secs: float
    throttle_secs: float


class EvalSpec(_EvalSpecFields):
    """The evaluation and export part of `train_and_evaluate`.

    Args:
      input_fn: returns a Dataset or tensors of features, or of (features, labels).
      steps: the number of steps of an evaluation; None for all of the data.
      name: name of the evaluation; part of the directory of its events.
      hooks: hooks of the evaluation.
      exporters: an `Exporter` or several, called after each evaluation.
      start_delay_secs: seconds that an evaluator task waits before its first evaluation.
      throttle_secs: least number of seconds from the start of one evaluation to the next.

    Raises:
      ValueError: a number out of range; an exporter without a name, or two of one name.
      TypeError: an argument of another type.

    Example:
      >>> EvalSpec(input_fn, steps=10, throttle_secs=60).steps
      10
    """

    def __new__(
        cls,
        input_fn: InputFn,
        steps: int | None = 100,
        name: str | None = None,
        hooks: Iterable[Any] | None = None,
        exporters: Exporter | Iterable[Exporter] | None = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> EvalSpec:
        check_input_fn(input_fn)
        check_steps(steps, "steps")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"`name` must be string, given: {name}")
        checked_hooks = _checked_hooks(hooks)
        checked_exporters = _checked_exporters(exporters)
        check_number(start_delay_secs, "start_delay_secs", least=0)
        check_number(throttle_secs, "throttle_secs", least=0)
        return super().__new__(
            cls,
            input_fn=input_fn,
            steps=steps,
            name=name,
            hooks=checked_hooks,
            exporters=checked_exporters,
            start_delay_secs=start_delay_secs,
            throttle_secs=throttle_secs,
        )


def _checked_hooks(hooks: Iterable[Any] | None) -> tuple[Any, ...]:
    hooks = as_list(hooks, "hooks", "SessionRunHook")
    return tuple(all_of(HOOK_TYPES, hooks, "All hooks must be `SessionRunHook` instances"))


def _checked_listeners(listeners: Iterable[Any] | None) -> tuple[Any, ...]:
    listeners = as_list(listeners, "saving_listeners", "CheckpointSaverListener")
    rule = "All saving_listeners must be `CheckpointSaverListener` instances"
    return tuple(all_of(tf.compat.v1.train.CheckpointSaverListener, listeners, rule))


def _checked_exporters(exporters: Any) -> tuple[Exporter, ...]:
    if isinstance(exporters, Exporter):
        exporters = [exporters]
    try:
        checked = tuple(exporters or ())
    except TypeError:
        checked = (None,)
    if not all(isinstance(e, Exporter) for e in checked):
        raise TypeError(
            "`exporters` must be an Exporter, an iterable of Exporter, or `None`, found "
            f"{exporters}."
        )
    names = [e.name for e in checked]
    for index, name in enumerate(names):
        if not name:
            raise ValueError(
                f"An Exporter cannot have a name that is `None` or empty. All exporter names: "
                f"{names}"
            )
        if not isinstance(name, str):
            raise ValueError(f"An Exporter must have a string name. Given: {type(name)}")
        if name in names[:index]:
            raise ValueError(
                "`exporters` must have unique names. Such a name cannot be `None`. All exporter "
                f"names: {names}"
            )
    return checked
