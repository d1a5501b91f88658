"""What is known of each class of hook: one row per class, looked up by the exact class.

TF's own hooks can tell from their timers when they next need control, so that an idle loop runs at
full length. A hook of another class can say so itself, by a method
`steps_until_control(global_step)` that returns a number of steps, or None for never; a hook that
says nothing gets control after every step, since it may read or change anything.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.training import basic_session_run_hooks as hooks_lib

from tpu_estimator_compat.hooks.early_stopping import (
    StopAtCheckpointStepHook,
    StopOnPredicateHook,
    StopWithChiefHook,
)
from tpu_estimator_compat.hooks.nan import LossNanHook
from tpu_estimator_compat.hooks.progress import ExamplesPerSecondHook, StandingStepHook
from tpu_estimator_compat.hooks.progress_bar import ProgressBarHook
from tpu_estimator_compat.hooks.saver_hook import SaverHook
from tpu_estimator_compat.spec import HostCallHook

Hook = Any  # a tf.compat.v1.train.SessionRunHook


@dataclasses.dataclass(frozen=True)
class Demand:
    """When a hook next needs control.

    Attributes:
      steps: after this many steps; None for no such limit.
      seconds: after this much time; None for no such limit.
    """

    steps: int | None = None
    seconds: float | None = None


NEVER = Demand()
EVERY_STEP = Demand(steps=1)


def _every_step(hook: Hook, global_step: int) -> Demand:
    del hook, global_step
    return EVERY_STEP


@dataclasses.dataclass(frozen=True)
class HookTraits:
    """What is known of hooks of one class; the defaults are what must be assumed of a stranger.

    Attributes:
      demand: of a hook and the global step (steps finished so far), when the hook next needs
        control.
      looks_at_host_calls: whether it may look at what host calls did, after any step.
      bounds_training: whether it sets the last step, so that no loop may overshoot it.
      call_counter: the attribute in which it counts its own calls, and has to be told of steps that
        it was not called for; None where it counts none.
      saves_checkpoints: whether it takes the place of the estimator's own saver.
      writes_in_background: whether a checkpoint may be unfinished until its `wait()` returns.
    """

    demand: Callable[[Hook, int], Demand] = _every_step
    looks_at_host_calls: bool = True
    bounds_training: bool = False
    call_counter: str | None = None
    saves_checkpoints: bool = False
    writes_in_background: bool = False


_STRANGER = HookTraits()


def of(hook: Hook) -> HookTraits:
    """The row of the class of `hook`.

    A subclass may override any method, so it is a stranger; but a saver it remains.
    """
    if row := _ROWS.get(type(hook)):
        return row
    base = next((_ROWS[c] for c in type(hook).__mro__ if c in _ROWS), _STRANGER)
    return HookTraits(
        saves_checkpoints=base.saves_checkpoints, writes_in_background=base.writes_in_background
    )


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
    """Demand of a SecondOrStepTimer at `position`; `lead` steps before it triggers."""
    last = timer.last_triggered_step()
    if last is None:
        return EVERY_STEP
    if timer._every_steps is not None:
        return Demand(steps=max(1, last + timer._every_steps - lead - position))
    elapsed = time.time() - timer._last_triggered_time
    return Demand(seconds=max(0.0, timer._every_secs - elapsed))


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
    if isinstance(hook._timer, hooks_lib.NeverTriggerTimer):
        return NEVER
    return _timer_demand(hook._timer, hook._iter_count)


def _host_call(hook: Hook, global_step: int) -> Demand:
    del global_step  # with nothing to fetch, only the summary writers need looking after
    return EVERY_STEP if any(f is not None for f in tf.nest.flatten(hook.fetches)) else NEVER


def _never(hook: Hook, global_step: int) -> Demand:
    del hook, global_step
    return NEVER


def _own(demand: Callable[[Hook, int], Demand], **other: Any) -> HookTraits:
    """The row of a hook that does not look at what host calls did."""
    return HookTraits(demand, looks_at_host_calls=False, **other)


_ROWS = {
    hooks_lib.CheckpointSaverHook: HookTraits(_timed, saves_checkpoints=True),  # has listeners
    hooks_lib.FinalOpsHook: HookTraits(_never),
    hooks_lib.LoggingTensorHook: _own(_logging, call_counter="_iter_count"),
    hooks_lib.NanTensorHook: _own(_every_step),
    hooks_lib.ProfilerHook: _own(_summary),
    hooks_lib.StepCounterHook: _own(_timed),
    hooks_lib.StopAtStepHook: _own(_last_step, bounds_training=True),
    hooks_lib.SummarySaverHook: _own(_summary),
    ExamplesPerSecondHook: _own(_timed),
    HostCallHook: _own(_host_call),
    LossNanHook: _own(_never),
    ProgressBarHook: _own(_never),
    SaverHook: _own(_timed, saves_checkpoints=True, writes_in_background=True),
    StandingStepHook: _own(_never),
    StopAtCheckpointStepHook: HookTraits(_last_step),
    StopOnPredicateHook: _own(_after_step),
    StopWithChiefHook: _own(_never),
}
