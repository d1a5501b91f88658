"""What is known of each class of hook: its row, and what a stranger is taken for."""

import threading

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.training import basic_session_run_hooks as hooks_lib

from tpu_estimator_compat.hooks import traits
from tpu_estimator_compat.hooks.early_stopping import (
    StopAtCheckpointStepHook,
    StopOnPredicateHook,
    StopWithChiefHook,
)
from tpu_estimator_compat.hooks.nan import LossNanHook
from tpu_estimator_compat.hooks.progress import ExamplesPerSecondHook, StandingStepHook
from tpu_estimator_compat.hooks.progress_bar import ProgressBarHook
from tpu_estimator_compat.hooks.saver_hook import SaverHook
from tpu_estimator_compat.hooks.traits import EVERY_STEP, NEVER, Demand
from tpu_estimator_compat.spec import HostCallHook

TRIGGERED = 20
"""The global step at which timers were last triggered."""
NOW = 23

KNOWN = {
    hooks_lib.CheckpointSaverHook: (
        lambda d: hooks_lib.CheckpointSaverHook("", save_steps=10),
        7,
    ),
    hooks_lib.FinalOpsHook: (lambda d: hooks_lib.FinalOpsHook([]), None),
    hooks_lib.LoggingTensorHook: (
        lambda d: counted(hooks_lib.LoggingTensorHook({}, every_n_iter=10)),
        9,  # by its own calls: there was one since
    ),
    hooks_lib.NanTensorHook: (lambda d: hooks_lib.NanTensorHook("x"), 1),
    # The step that is profiled, or summarized, is the one before which the hook asks for it.
    hooks_lib.ProfilerHook: (
        lambda d: due(hooks_lib.ProfilerHook(10, output_dir=d)),
        6,
    ),
    hooks_lib.SummarySaverHook: (
        lambda d: due(hooks_lib.SummarySaverHook(10, output_dir="", summary_op="x")),
        6,
    ),
    hooks_lib.StepCounterHook: (lambda d: hooks_lib.StepCounterHook(10), 7),
    hooks_lib.StopAtStepHook: (lambda d: hooks_lib.StopAtStepHook(last_step=100), 77),
    ExamplesPerSecondHook: (lambda d: ExamplesPerSecondHook(None, 10), 7),
    HostCallHook: (lambda d: HostCallHook([]), None),
    LossNanHook: (lambda d: LossNanHook("x"), None),
    ProgressBarHook: (lambda d: ProgressBarHook("x", 1, None, None), None),
    SaverHook: (lambda d: SaverHook("", save_steps=10), 7),
    StandingStepHook: (lambda d: StandingStepHook(), None),
    StopAtCheckpointStepHook: (lambda d: StopAtCheckpointStepHook(lambda: 0, 100), 77),
    # It looks at the step before the run: at 30, when 31 are made.
    StopOnPredicateHook: (lambda d: StopOnPredicateHook(bool, None, 10), 8),
    StopWithChiefHook: (lambda d: StopWithChiefHook(), None),
}
"""By class: a hook with a timer of 10 steps, if it has one, and after how many steps it is due."""


def counted(hook):
    """A hook that counts its own calls, with one since it was triggered."""
    hook._iter_count = TRIGGERED + 1
    return hook


def due(hook):
    """A hook that knows when it asks for a summary next."""
    hook._next_step = TRIGGERED + 10
    return hook


@pytest.fixture
def made(tmp_path):
    """Makes a hook of a known class, triggered at `TRIGGERED`."""

    def make(hook_type):
        with tf.Graph().as_default():  # TF1's event writers are for graphs
            hook = KNOWN[hook_type][0](str(tmp_path))
        if hasattr(hook, "_timer"):
            hook._timer.update_last_triggered_step(TRIGGERED)
        return hook

    return make


def types_with(**facts):
    """The known classes of which something is said."""
    [(name, value)] = facts.items()
    return {t for t, row in traits._ROWS.items() if getattr(row, name) == value}


def test_all_rows_are_tested():
    assert set(KNOWN) == set(traits._ROWS)


@pytest.mark.parametrize("hook_type", KNOWN, ids=lambda t: t.__name__)
def test_next_control(made, hook_type):
    assert traits.demand(made(hook_type), NOW) == Demand(steps=KNOWN[hook_type][1])


@pytest.mark.parametrize(
    "hook_type",
    [
        hooks_lib.CheckpointSaverHook,
        hooks_lib.ProfilerHook,
        hooks_lib.StepCounterHook,
        hooks_lib.SummarySaverHook,
        ExamplesPerSecondHook,
        SaverHook,
        StopOnPredicateHook,
    ],
)
def test_before_its_first_turn_a_timer_wants_every_step(made, hook_type):
    hook = made(hook_type)
    hook._timer.reset()
    assert traits.demand(hook, NOW) == EVERY_STEP


def test_before_the_session_a_number_of_steps_is_no_last_step():
    assert traits.demand(hooks_lib.StopAtStepHook(num_steps=5), NOW) == EVERY_STEP


def test_a_summary_that_was_never_asked_for_is_due(made):
    hook = made(hooks_lib.SummarySaverHook)
    hook._next_step = None
    assert traits.demand(hook, NOW) == EVERY_STEP


def test_an_overdue_timer_wants_the_next_step(made):
    assert traits.demand(made(hooks_lib.StepCounterHook), 50) == EVERY_STEP


def test_timers_of_seconds(monkeypatch):
    hook = SaverHook("", save_secs=60)
    monkeypatch.setattr("time.time", lambda: 1000.0)
    hook._timer.update_last_triggered_step(TRIGGERED)
    monkeypatch.setattr("time.time", lambda: 1012.0)
    assert traits.demand(hook, NOW) == Demand(seconds=48.0)
    monkeypatch.setattr("time.time", lambda: 1100.0)
    assert traits.demand(hook, NOW) == Demand(seconds=0.0)


def test_logging_at_the_end_alone_wants_no_control():
    hook = hooks_lib.LoggingTensorHook({}, at_end=True)
    assert traits.demand(hook, NOW) == NEVER


def test_a_host_call_is_made_every_step():
    assert traits.demand(HostCallHook([None, "op"]), NOW) == EVERY_STEP


def test_who_may_look_at_host_calls():
    assert types_with(looks_at_host_calls=True) == {
        hooks_lib.CheckpointSaverHook,  # by its listeners
        hooks_lib.FinalOpsHook,
        StopAtCheckpointStepHook,
    }


def test_who_bounds_training():
    assert types_with(bounds_training=True) == {hooks_lib.StopAtStepHook}


def test_who_counts_calls_is_told_of_skipped_ones(made):
    assert types_with(call_counter=None) == {*KNOWN} - {hooks_lib.LoggingTensorHook}
    hook = made(hooks_lib.LoggingTensorHook)
    traits.skipped(hook, 4)
    assert traits.demand(hook, NOW) == Demand(steps=5)


def test_nothing_is_told_to_others(made):
    hook = made(hooks_lib.StepCounterHook)
    before = dict(vars(hook))
    traits.skipped(hook, 4)
    assert vars(hook) == before


def test_who_saves():
    assert types_with(saves_checkpoints=True) == {hooks_lib.CheckpointSaverHook, SaverHook}
    assert types_with(writes_in_background=True) == {SaverHook}


@pytest.mark.parametrize("hook_type", [SaverHook, type("Own", (SaverHook,), {})])
def test_a_write_in_the_background_is_waited_for(hook_type):
    hook = hook_type("", save_steps=10)
    written = threading.Event()
    hook._start(lambda: written.wait(0.2) or written.set())
    traits.wait(hook)
    assert written.is_set()


def test_others_are_not_waited_for(made):
    traits.wait(object())
    traits.wait(made(hooks_lib.CheckpointSaverHook))


class SavesOften(hooks_lib.CheckpointSaverHook):
    pass


class StopsElsewhere(hooks_lib.StopAtStepHook):
    pass


@pytest.mark.parametrize(
    "hook",
    [tf.train.SessionRunHook(), StopsElsewhere(last_step=100), SavesOften("", save_steps=10)],
    ids=lambda hook: type(hook).__name__,
)
def test_strangers_and_subclasses_want_every_step(hook):
    row = traits.of(hook)
    assert traits.demand(hook, NOW) == EVERY_STEP
    assert row.looks_at_host_calls
    assert not row.bounds_training
    assert row.call_counter is None
    assert row.saves_checkpoints == isinstance(hook, SavesOften)


@pytest.mark.parametrize("steps", [5, None])
@pytest.mark.parametrize("base", [tf.train.SessionRunHook, StandingStepHook])
def test_a_hooks_own_word_counts_first(base, steps):
    hook = base()
    hook.steps_until_control = lambda global_step: steps and steps * global_step
    assert traits.demand(hook, 3) == Demand(steps=steps and 15)


def test_tensorflows_hooks_are_known():
    """A hook that TensorFlow adds is seen here, before it slows anybody down."""
    strangers = {hooks_lib.FeedFnHook, hooks_lib.GlobalStepWaiterHook}
    hooks = {
        each
        for each in vars(hooks_lib).values()
        if isinstance(each, type)
        and issubclass(each, tf.train.SessionRunHook)
        and each.__module__ == hooks_lib.__name__
        and not each.__name__.startswith("_")
    }
    assert hooks - set(traits._ROWS) == strangers
