"""The scheduling properties of each hook class: one row per class and its simple subclasses.

The timers of TF's hooks tell when a hook next needs control, so that a loop may run until then. The
same holds for a subclass that changes only the action, such as the logging. A hook of another class
may have a method `steps_until_control(global_step)` that returns a number of steps, or None for
never. Any other hook gets control after every step, since it may read or change anything.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.hooks.limits import LossNanHook
from tpu_estimator_compat.engine.hooks.progress import ExamplesPerSecondHook, ProgressBarHook
from tpu_estimator_compat.engine.hooks.saver_hook import SaverHook
from tpu_estimator_compat.spec import HostCallHook, SummaryWritersHook
from tpu_estimator_compat.tf_internals import hooks_lib

Hook = Any  # a tf.compat.v1.train.SessionRunHook


@dataclasses.dataclass(frozen=True)
class Demand:
    """The time at which a hook next needs control; None for no such limit.

    A fraction of `steps` is rounded up.
    """

    steps: float | None = None
    seconds: float | None = None


NEVER = Demand()
EVERY_STEP = Demand(steps=1)


def _every_step(hook: Hook, global_step: int) -> Demand:
    del hook, global_step
    return EVERY_STEP


@dataclasses.dataclass(frozen=True)
class HookTraits:
    """The scheduling properties of one hook class; the defaults are safe for unknown hooks.

    Attributes:
      demand: takes a hook and the global step (of finished steps), returns the hook's next demand.
      looks_at_host_calls: whether it may read results of host calls, after any step.
      bounds_training: whether it sets the last step, which no loop may overshoot.
      call_counter: the attribute that counts its calls, to which skipped steps are added; None for
        none.
      saves_checkpoints: whether it replaces the estimator's own saver.
      timer_methods: methods that runs call only when its timer is due. A subclass that overrides
        only these, `begin`, `after_create_session` and `end` keeps the demand of its class.
    """

    demand: Callable[[Hook, int], Demand] = _every_step
    looks_at_host_calls: bool = True
    bounds_training: bool = False
    call_counter: str | None = None
    saves_checkpoints: bool = False
    timer_methods: frozenset[str] = frozenset()


_UNKNOWN = HookTraits()


def of(hook: Hook) -> HookTraits:
    """The row of `hook`, by its class.

    A subclass, or a hook with attributes that hide methods, keeps the demand of a known class
    unless it overrides a name on which the schedule relies. If it does, nothing is assumed, except
    that a saver's subclass still saves.
    """
    known = next((c for c in type(hook).__mro__ if c in ROWS), None)
    if known is None:
        return _UNKNOWN
    row = ROWS[known]
    if _methods(known).isdisjoint(vars(hook)) and type(hook) is known:
        return row
    saver = HookTraits(saves_checkpoints=row.saves_checkpoints)
    if _overrides_schedule(hook, known):
        return saver
    return dataclasses.replace(saver, demand=row.demand, call_counter=row.call_counter)


def _overrides_schedule(hook: Hook, known: type) -> bool:
    """Whether `hook` overrides a name on which the schedule of its known class relies.

    It checks every other class in the MRO: `super()` in a method of `known` may reach it.
    """
    others = [c for c in type(hook).__mro__ if c not in known.__mro__]
    if not all(_names(known).isdisjoint(vars(c)) for c in others):
        return True
    return not (_methods(known) & _names(known)).isdisjoint(vars(hook))


@functools.cache  # of the few classes that are known
def _methods(known: type) -> frozenset[str]:
    """Members of a known class that an attribute of an instance would hide."""
    return frozenset(name for name in dir(known) if not name.startswith("__"))


@functools.cache
def _names(known: type) -> frozenset[str]:
    """Names that a subclass of a known hook may not define if it is to keep its demand.

    Besides members of the class, these are names in its methods, such as `_timer`, for which a
    subclass may have a property.
    """
    methods = [vars(c).get(name) for c in known.__mro__ for name in ("before_run", "after_run")]
    used = {name for m in methods if m is not None for name in m.__code__.co_names}
    private = {name for name in used if name.startswith("_")}
    free = {"begin", "after_create_session", "end", *ROWS[known].timer_methods}
    return (_methods(known) | private | {"__getattribute__", "__setattr__"}) - free


def demand(hook: Hook, global_step: int) -> Demand:
    """The hook's next demand: by its own method, else by its row."""
    if hasattr(hook, "steps_until_control"):
        return Demand(steps=hook.steps_until_control(global_step))
    return of(hook).demand(hook, global_step)


def skipped(hook: Hook, steps: int) -> None:
    """Adds the number of steps in which `hook` was not called to its call counter."""
    if counter := of(hook).call_counter:
        setattr(hook, counter, getattr(hook, counter) + steps)


def _timer_demand(timer: Any, position: int, lead: int = 0) -> Demand:
    """Demand of a SecondOrStepTimer at `position`; `lead` steps before it triggers."""
    if not _is_plain(timer, hooks_lib.SecondOrStepTimer):
        return EVERY_STEP  # another timer may trigger at any step
    last = timer.last_triggered_step()
    if last is None:
        return EVERY_STEP
    if timer._every_steps is not None:
        return Demand(steps=max(1, last + timer._every_steps - lead - position))
    elapsed = time.time() - timer._last_triggered_time
    return Demand(seconds=max(0.0, timer._every_secs - elapsed))


def _is_plain(timer: Any, kind: type) -> bool:
    """Whether `timer` is of the class `kind` itself, with no method replaced."""
    return _methods(kind).isdisjoint(vars(timer)) and type(timer) is kind


def last_step(hook: Hook, global_step: int) -> Demand:
    return EVERY_STEP if hook._last_step is None else Demand(steps=hook._last_step - global_step)


def _timed(hook: Hook, global_step: int) -> Demand:
    return _timer_demand(hook._timer, global_step)


def after_step(hook: Hook, global_step: int) -> Demand:
    # Its timer gets the step before the run, and so triggers one step later.
    return _timer_demand(hook._timer, global_step, lead=-1)


def _summary(hook: Hook, global_step: int) -> Demand:
    # The hook asks for the summary before the step that is due, so the run must end before it.
    if hook._next_step is None:
        return EVERY_STEP
    return _timer_demand(hook._timer, global_step, lead=1)


def _logging(hook: Hook, global_step: int) -> Demand:
    del global_step  # it counts its own calls
    if _is_plain(hook._timer, hooks_lib.NeverTriggerTimer):
        return NEVER
    return _timer_demand(hook._timer, hook._iter_count)


def _host_call(hook: Hook, global_step: int) -> Demand:
    del global_step
    # A host call may have returned nothing.
    return EVERY_STEP if any(f is not None for f in tf.nest.flatten(hook.fetches)) else NEVER


def never(hook: Hook, global_step: int) -> Demand:
    del hook, global_step
    return NEVER


def row(
    demand: Callable[[Hook, int], Demand],
    *timer_methods: str,
    looks_at_host_calls: bool = False,
    **other: Any,
) -> HookTraits:
    return HookTraits(demand, looks_at_host_calls, timer_methods=frozenset(timer_methods), **other)


ROWS: dict[type, HookTraits] = {
    hooks_lib.CheckpointSaverHook: row(
        _timed,
        "_save",
        "_get_saver",
        looks_at_host_calls=True,  # by its listeners
        saves_checkpoints=True,
    ),
    hooks_lib.FinalOpsHook: row(never, looks_at_host_calls=True),
    hooks_lib.LoggingTensorHook: row(_logging, "_log_tensors", call_counter="_iter_count"),
    hooks_lib.NanTensorHook: row(_every_step),
    hooks_lib.ProfilerHook: row(_summary, "_save"),
    hooks_lib.StepCounterHook: row(_timed, "_log_and_record"),
    hooks_lib.StopAtStepHook: row(last_step, bounds_training=True),
    hooks_lib.SummarySaverHook: row(_summary, "_get_summary_op"),
    ExamplesPerSecondHook: row(_timed, "_log_and_record"),
    HostCallHook: row(_host_call),
    LossNanHook: row(never),
    ProgressBarHook: row(never),
    SaverHook: row(_timed, saves_checkpoints=True),
    SummaryWritersHook: row(never),
}
"""By class; `estimator/early_stopping.py` adds the rows of its hooks."""
