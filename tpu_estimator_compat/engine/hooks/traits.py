"""The scheduling properties of each hook class: one row per class and its plain subclasses.

TF's own hooks can tell from their timers when they next need control, so that an idle loop runs at
full length. So can a subclass that changes only what is done in such a turn, such as what is
logged. A hook of another class can say so itself, by a method `steps_until_control(global_step)`
that returns a number of steps, or None for never; a hook that says nothing gets control after every
step, since it may read or change anything.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.hooks.early_stopping import (
    StopAtCheckpointStepHook,
    StopOnPredicateHook,
    StopWithChiefHook,
)
from tpu_estimator_compat.engine.hooks.nan import LossNanHook
from tpu_estimator_compat.engine.hooks.progress import ExamplesPerSecondHook
from tpu_estimator_compat.engine.hooks.progress_bar import ProgressBarHook
from tpu_estimator_compat.engine.hooks.saver_hook import SaverHook
from tpu_estimator_compat.spec import HostCallHook, SummaryWritersHook
from tpu_estimator_compat.tf_internals import hooks_lib

Hook = Any  # a tf.compat.v1.train.SessionRunHook


@dataclasses.dataclass(frozen=True)
class Demand:
    """When a hook next needs control.

    Attributes:
      steps: after this many steps, any fraction rounded up; None for no such limit.
      seconds: after this much time; None for no such limit.
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
    """The scheduling properties of one hook class; defaults are safe for unknown hooks.

    Attributes:
      demand: of a hook and the global step (steps finished so far), when the hook next needs
        control.
      looks_at_host_calls: whether it may look at what host calls did, after any step.
      bounds_training: whether it sets the last step, so that no loop may overshoot it.
      call_counter: the attribute in which it counts its own calls, and has to be told of steps that
        it was not called for; None where it counts none.
      saves_checkpoints: whether it takes the place of the estimator's own saver.
      writes_in_background: whether a checkpoint may be unfinished until its `wait()` returns.
      timer_methods: methods that are called only when its timer is due. A subclass that overrides
        only these, `begin`, `after_create_session` and `end` keeps the demand of its class.
    """

    demand: Callable[[Hook, int], Demand] = _every_step
    looks_at_host_calls: bool = True
    bounds_training: bool = False
    call_counter: str | None = None
    saves_checkpoints: bool = False
    writes_in_background: bool = False
    timer_methods: frozenset[str] = frozenset()


_UNKNOWN = HookTraits()


def of(hook: Hook) -> HookTraits:
    """The row of `hook`, by its class.

    A subclass, or a hook that has attributes in the place of methods, keeps the cadence of a known
    class if it overrides nothing by which that takes its turns; else it is a stranger. It may look
    at anything in its turns, and a saver it remains.
    """
    known = next((c for c in type(hook).__mro__ if c in _ROWS), None)
    if known is None:
        return _UNKNOWN
    row = _ROWS[known]
    if _methods(known).isdisjoint(vars(hook)) and type(hook) is known:
        return row
    saver = HookTraits(
        saves_checkpoints=row.saves_checkpoints, writes_in_background=row.writes_in_background
    )
    if _overrides_schedule(hook, known):
        return saver
    return dataclasses.replace(saver, demand=row.demand, call_counter=row.call_counter)


def _overrides_schedule(hook: Hook, known: type) -> bool:
    """Whether `hook` takes its turns in another way than the class `known`, which it is of.

    All classes that `known` does not have count, wherever they stand: a method of `known` may call
    one of theirs by `super()`.
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
    """The methods that a subclass of a known hook may not define if it is to keep its turns.

    Besides members of the known class these are names that its methods use, such as `_timer`, in
    whose place there may be a property.
    """
    methods = [vars(c).get(name) for c in known.__mro__ for name in ("before_run", "after_run")]
    used = {name for m in methods if m is not None for name in m.__code__.co_names}
    private = {name for name in used if name.startswith("_")}
    free = {"begin", "after_create_session", "end", *_ROWS[known].timer_methods}
    return (_methods(known) | private | {"__getattribute__", "__setattr__"}) - free


def demand(hook: Hook, global_step: int) -> Demand:
    """When `hook` next needs control: as it says itself, else as its row says."""
    if hasattr(hook, "steps_until_control"):
        return Demand(steps=hook.steps_until_control(global_step))
    return of(hook).demand(hook, global_step)


def skipped(hook: Hook, steps: int) -> None:
    """Tells a hook that counts its own calls about steps that it was not called for."""
    if counter := of(hook).call_counter:
        setattr(hook, counter, getattr(hook, counter) + steps)


def wait(hook: Hook) -> None:
    """Waits until what `hook` began to write is written.

    Raises:
      tf.errors.OpError, ValueError: what went wrong with it.
    """
    if of(hook).writes_in_background:
        hook.wait()


def _timer_demand(timer: Any, position: int, lead: int = 0) -> Demand:
    """Demand of a SecondOrStepTimer at `position`; `lead` steps before it triggers.

    Of another timer, in its place, nobody knows when it triggers.
    """
    if not _is_plain(timer, hooks_lib.SecondOrStepTimer):
        return EVERY_STEP
    last = timer.last_triggered_step()
    if last is None:
        return EVERY_STEP
    if timer._every_steps is not None:
        return Demand(steps=max(1, last + timer._every_steps - lead - position))
    elapsed = time.time() - timer._last_triggered_time
    return Demand(seconds=max(0.0, timer._every_secs - elapsed))


def _is_plain(timer: Any, kind: type) -> bool:
    """Whether a timer is of a kind, and nobody has put another method in its place."""
    return _methods(kind).isdisjoint(vars(timer)) and type(timer) is kind


def _last_step(hook: Hook, global_step: int) -> Demand:
    return EVERY_STEP if hook._last_step is None else Demand(steps=hook._last_step - global_step)


def _timed(hook: Hook, global_step: int) -> Demand:
    return _timer_demand(hook._timer, global_step)


def _after_step(hook: Hook, global_step: int) -> Demand:
    # It goes by the step that it was told before the run: the one to trigger for is over by then.
    return _timer_demand(hook._timer, global_step, lead=-1)


def _summary(hook: Hook, global_step: int) -> Demand:
    # It asks for the summary before the step that it is due in: stop one step early.
    if hook._next_step is None:
        return EVERY_STEP
    return _timer_demand(hook._timer, global_step, lead=1)


def _logging(hook: Hook, global_step: int) -> Demand:
    del global_step  # it counts its own calls
    if _is_plain(hook._timer, hooks_lib.NeverTriggerTimer):
        return NEVER
    return _timer_demand(hook._timer, hook._iter_count)


def _host_call(hook: Hook, global_step: int) -> Demand:
    del global_step  # a host call may have returned nothing
    return EVERY_STEP if any(f is not None for f in tf.nest.flatten(hook.fetches)) else NEVER


def _never(hook: Hook, global_step: int) -> Demand:
    del hook, global_step
    return NEVER


def _row(
    demand: Callable[[Hook, int], Demand],
    *timer_methods: str,
    looks_at_host_calls: bool = False,
    **other: Any,
) -> HookTraits:
    return HookTraits(demand, looks_at_host_calls, timer_methods=frozenset(timer_methods), **other)


_ROWS: dict[type, HookTraits] = {
    hooks_lib.CheckpointSaverHook: _row(
        _timed,
        "_save",
        "_get_saver",
        looks_at_host_calls=True,  # by its listeners
        saves_checkpoints=True,
    ),
    hooks_lib.FinalOpsHook: _row(_never, looks_at_host_calls=True),
    hooks_lib.LoggingTensorHook: _row(_logging, "_log_tensors", call_counter="_iter_count"),
    hooks_lib.NanTensorHook: _row(_every_step),
    hooks_lib.ProfilerHook: _row(_summary, "_save"),
    hooks_lib.StepCounterHook: _row(_timed, "_log_and_record"),
    hooks_lib.StopAtStepHook: _row(_last_step, bounds_training=True),
    hooks_lib.SummarySaverHook: _row(_summary, "_get_summary_op"),
    ExamplesPerSecondHook: _row(_timed, "_log_and_record"),
    HostCallHook: _row(_host_call),
    LossNanHook: _row(_never),
    ProgressBarHook: _row(_never),
    SaverHook: _row(_timed, saves_checkpoints=True, writes_in_background=True),
    StopAtCheckpointStepHook: _row(_last_step, looks_at_host_calls=True),
    StopOnPredicateHook: _row(_after_step),
    StopWithChiefHook: _row(_never),
    SummaryWritersHook: _row(_never),
}
