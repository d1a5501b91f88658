"""Asks each hook when it next needs control, so that an idle loop runs at full length.

TF's own hooks can tell from their timers. A hook of another class can say so itself, by a method
`steps_until_control(global_step)` that returns a number of steps, or None for never; a hook that
says nothing gets control after every step, since it may read or change anything.
"""

from __future__ import annotations

import time
from typing import Any

from tensorflow.python.training import basic_session_run_hooks as hooks_lib

from tpu_estimator_compat.hooks.early_stopping import StopOnPredicateHook
from tpu_estimator_compat.hooks.progress import ExamplesPerSecondHook, StandingStepHook
from tpu_estimator_compat.hooks.saver_hook import SaverHook
from tpu_estimator_compat.spec import HostCallHook

Hook = Any  # a tf.compat.v1.train.SessionRunHook


class Demand:
    """When a hook next needs control.

    Attributes:
      steps: after this many steps; None for no such limit.
      seconds: after this much time; None for no such limit.
    """

    def __init__(self, steps: int | None = None, seconds: float | None = None):
        self.steps = steps
        self.seconds = seconds


NEVER = Demand()
EVERY_STEP = Demand(steps=1)


def demand(hook: Hook, global_step: int) -> Demand:
    """When `hook` next needs control, seen from `global_step` (steps finished so far)."""
    if hasattr(hook, "steps_until_control"):
        return Demand(steps=hook.steps_until_control(global_step))
    # Subclasses may override any method: only the exact classes are known.
    known = _KNOWN.get(type(hook))
    return known(hook, global_step) if known else EVERY_STEP


def _timer_demand(timer, position: int, lead: int = 0) -> Demand:
    """Demand of a SecondOrStepTimer at `position`; `lead` steps before it triggers."""
    last = timer.last_triggered_step()
    if last is None:
        return EVERY_STEP
    if timer._every_steps is not None:
        return Demand(steps=max(1, last + timer._every_steps - lead - position))
    elapsed = time.time() - timer._last_triggered_time
    return Demand(seconds=max(0.0, timer._every_secs - elapsed))


def _stop_at_step(hook, global_step: int) -> Demand:
    return EVERY_STEP if hook._last_step is None else Demand(steps=hook._last_step - global_step)


def _timed(hook, global_step: int) -> Demand:
    return _timer_demand(hook._timer, global_step)


def _after_step(hook, global_step: int) -> Demand:
    # It goes by the step that it was told before the run: the one to trigger for is over by then.
    return _timer_demand(hook._timer, global_step, lead=-1)


def _summary(hook, global_step: int) -> Demand:
    # It asks for the summary before the step that it is due in: stop one step early.
    if hook._next_step is None:
        return EVERY_STEP
    return _timer_demand(hook._timer, global_step, lead=1)


def _logging(hook, global_step: int) -> Demand:
    del global_step  # it counts its own calls
    if isinstance(hook._timer, hooks_lib.NeverTriggerTimer):
        return NEVER
    return _timer_demand(hook._timer, hook._iter_count)


def _never(hook, global_step: int) -> Demand:
    del hook, global_step
    return NEVER


_KNOWN = {
    hooks_lib.StopAtStepHook: _stop_at_step,
    hooks_lib.CheckpointSaverHook: _timed,
    SaverHook: _timed,
    hooks_lib.StepCounterHook: _timed,
    ExamplesPerSecondHook: _timed,
    StopOnPredicateHook: _after_step,
    hooks_lib.SummarySaverHook: _summary,
    hooks_lib.ProfilerHook: _summary,
    hooks_lib.LoggingTensorHook: _logging,
    hooks_lib.FinalOpsHook: _never,
}


_LOOKS_AT_STEPS = {*_KNOWN, hooks_lib.NanTensorHook, HostCallHook, StandingStepHook} - {
    hooks_lib.CheckpointSaverHook,  # its listeners may look at anything
    hooks_lib.FinalOpsHook,
}


def looks_around(hook: Hook) -> bool:
    """Whether `hook` may look at what host calls did, after any step."""
    return type(hook) not in _LOOKS_AT_STEPS


def skipped(hook: Hook, steps: int) -> None:
    """Tells a hook that counts its own calls about steps that it was not called for."""
    if type(hook) is hooks_lib.LoggingTensorHook:
        hook._iter_count += steps


def is_limit(hook: Hook) -> bool:
    """Whether `hook` bounds training itself, so that no loop may overshoot it."""
    return type(hook) is hooks_lib.StopAtStepHook
