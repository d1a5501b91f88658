import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.training import basic_session_run_hooks as hooks_lib

from tpu_estimator_compat.engine.hooks import traits
from tpu_estimator_compat.engine.hooks.limits import LossNanHook
from tpu_estimator_compat.engine.hooks.progress import ExamplesPerSecondHook, ProgressBarHook
from tpu_estimator_compat.engine.hooks.saver_hook import SaverHook
from tpu_estimator_compat.engine.hooks.traits import EVERY_STEP, NEVER, Demand
from tpu_estimator_compat.estimator.early_stopping import StopWithChiefHook, _hooks, _original
from tpu_estimator_compat.spec import HostCallHook, SummaryWritersHook

StopAtCheckpointStepHook = _hooks._StopAtCheckpointStepHook
StopOnPredicateHook = _original._StopOnPredicateHook

TRIGGERED = 20
"""The global step at which timers were last triggered."""
NOW = 23

KNOWN = {
    hooks_lib.CheckpointSaverHook: (lambda d: hooks_lib.CheckpointSaverHook("", save_steps=10), 7),
    hooks_lib.FinalOpsHook: (lambda d: hooks_lib.FinalOpsHook([]), None),
    hooks_lib.LoggingTensorHook: (
        lambda d: counted(hooks_lib.LoggingTensorHook({}, every_n_iter=10)),
        9,  # by its own calls: there was one since
    ),
    hooks_lib.NanTensorHook: (lambda d: hooks_lib.NanTensorHook("x"), 1),
    # The step that is profiled, or summarized, is the one before which the hook asks for it.
    hooks_lib.ProfilerHook: (lambda d: due(hooks_lib.ProfilerHook(10, output_dir=d)), 6),
    hooks_lib.SummarySaverHook: (
        lambda d: due(hooks_lib.SummarySaverHook(10, output_dir="", summary_op="x")),
        6,
    ),
    hooks_lib.StepCounterHook: (lambda d: hooks_lib.StepCounterHook(10), 7),
    hooks_lib.StopAtStepHook: (lambda d: hooks_lib.StopAtStepHook(last_step=100), 77),
    ExamplesPerSecondHook: (lambda d: ExamplesPerSecondHook(None, 10), 7),
    HostCallHook: (lambda d: HostCallHook([]), None),
    SummaryWritersHook: (lambda d: SummaryWritersHook(), None),
    LossNanHook: (lambda d: LossNanHook("x"), None),
    ProgressBarHook: (lambda d: ProgressBarHook("x", 1, None), None),
    SaverHook: (lambda d: SaverHook("", save_steps=10), 7),
    StopAtCheckpointStepHook: (lambda d: StopAtCheckpointStepHook(d, 100), 77),
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
    return {t for t, row in traits.ROWS.items() if getattr(row, name) == value}


def test_all_rows_are_tested():
    assert set(KNOWN) == set(traits.ROWS)


@pytest.mark.parametrize("hook_type", KNOWN, ids=lambda t: t.__name__)
def test_next_control(made, hook_type):
    assert traits.demand(made(hook_type), NOW) == Demand(steps=KNOWN[hook_type][1])


WITH_TIMERS = [
    hooks_lib.CheckpointSaverHook,
    hooks_lib.ProfilerHook,
    hooks_lib.StepCounterHook,
    hooks_lib.SummarySaverHook,
    ExamplesPerSecondHook,
    SaverHook,
    StopOnPredicateHook,
]


@pytest.mark.parametrize("hook_type", WITH_TIMERS)
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


class SavesElsewhere(hooks_lib.CheckpointSaverHook):
    def after_run(self, run_context, run_values):
        super().after_run(run_context, run_values)


class StopsElsewhere(hooks_lib.StopAtStepHook):
    def before_run(self, run_context):
        return super().before_run(run_context)


@pytest.mark.parametrize(
    "hook",
    [tf.train.SessionRunHook(), StopsElsewhere(last_step=100), SavesElsewhere("", save_steps=10)],
    ids=lambda hook: type(hook).__name__,
)
def test_unknown_hooks_want_every_step(hook):
    row = traits.of(hook)
    assert traits.demand(hook, NOW) == EVERY_STEP
    assert row.looks_at_host_calls
    assert not row.bounds_training
    assert row.call_counter is None
    assert row.saves_checkpoints == isinstance(hook, SavesElsewhere)


def timer_method(self, *args):
    """What is called in a turn, whatever it is called with."""


def logging_hook(**members):
    """A hook of a subclass of LoggingTensorHook, called once since it was triggered."""
    hook = type("Logs", (hooks_lib.LoggingTensorHook,), members)({}, every_n_iter=10)
    hook._timer.update_last_triggered_step(TRIGGERED)
    return counted(hook)


@pytest.mark.parametrize("hook_type", KNOWN, ids=lambda t: t.__name__)
def test_a_subclass_that_changes_a_turn_keeps_the_cadence(made, hook_type):
    hook, row = made(hook_type), traits.of(made(hook_type))
    free = {"__init__", "__repr__", "begin", "after_create_session", "end", "its_own"}
    members = dict.fromkeys({*free, *row.timer_methods}, timer_method)
    hook.__class__ = type("Changed", (hook_type,), members)
    assert traits.demand(hook, NOW) == Demand(steps=KNOWN[hook_type][1])
    assert traits.of(hook).call_counter == row.call_counter
    assert traits.of(hook).looks_at_host_calls  # in its turn
    assert not traits.of(hook).bounds_training
    assert traits.of(hook).saves_checkpoints == row.saves_checkpoints


@pytest.mark.parametrize("hook_type", KNOWN, ids=lambda t: t.__name__)
@pytest.mark.parametrize("method", ["before_run", "after_run", "__getattribute__", "__setattr__"])
def test_a_subclass_that_overrides_the_schedule_is_unknown(made, hook_type, method):
    hook = made(hook_type)
    hook.__class__ = type("Own", (hook_type,), {method: getattr(hook_type, method)})
    assert traits.demand(hook, NOW) == EVERY_STEP
    assert traits.of(hook).call_counter is None


def test_timer_methods_are_there():
    """A TensorFlow that renames one is seen here."""
    for hook_type, row in traits.ROWS.items():
        assert all(callable(getattr(hook_type, name)) for name in row.timer_methods), hook_type


class Mixin:
    """Takes turns, but is no hook."""

    def after_run(self, run_context, run_values):
        super().after_run(run_context, run_values)


class Between(hooks_lib.CheckpointSaverHook):
    """Its method is called by `super()` of SaverHook's, if it stands behind that."""

    def after_run(self, run_context, run_values):
        super().after_run(run_context, run_values)


class Harmless:
    def write_somewhere(self, text):
        pass


@pytest.mark.parametrize(
    ("bases", "steps"),
    [
        ((Harmless, hooks_lib.LoggingTensorHook), 9),
        ((hooks_lib.LoggingTensorHook, Harmless), 9),
        ((Mixin, hooks_lib.LoggingTensorHook), 1),
        ((hooks_lib.LoggingTensorHook, Mixin), 1),
        ((hooks_lib.LoggingTensorHook, hooks_lib.SummarySaverHook), 1),
    ],
)
def test_mixins_count_wherever_they_stand(bases, steps):
    hook = type("Mixed", bases, {"_log_tensors": timer_method})({}, every_n_iter=10)
    hook._timer.update_last_triggered_step(TRIGGERED)
    assert traits.demand(counted(hook), NOW) == Demand(steps=steps)


def test_a_class_that_super_calls_counts(tmp_path):
    hook = type("Mixed", (SaverHook, Between), {})(str(tmp_path), save_steps=10)
    hook._timer.update_last_triggered_step(TRIGGERED)
    assert traits.demand(hook, NOW) == EVERY_STEP


def test_a_subclass_of_a_subclass():
    def below(hook, **members):
        hook.__class__ = type("Below", (type(hook),), members)
        return hook

    assert traits.demand(below(logging_hook(_log_tensors=timer_method)), NOW) == Demand(steps=9)
    assert traits.demand(below(logging_hook(after_run=timer_method)), NOW) == EVERY_STEP
    own = below(logging_hook(_log_tensors=timer_method), before_run=timer_method)
    assert traits.demand(own, NOW) == EVERY_STEP


@pytest.mark.parametrize("name", ["_timer", "_iter_count", "_should_trigger"])
def test_a_property_in_the_place_of_what_turns_go_by(name):
    hidden = property(lambda self: 0, lambda self, value: None)
    hook = logging_hook()
    hook.__class__ = type("Hides", (hooks_lib.LoggingTensorHook,), {name: hidden})
    assert traits.demand(hook, NOW) == EVERY_STEP


@pytest.mark.parametrize("hook_type", KNOWN, ids=lambda t: t.__name__)
def test_attributes_in_the_place_of_methods(made, hook_type):
    for name in traits.of(made(hook_type)).timer_methods:
        hook = made(hook_type)
        setattr(hook, name, timer_method)
        assert traits.demand(hook, NOW) == Demand(steps=KNOWN[hook_type][1])
    hook = made(hook_type)
    hook.after_run = timer_method
    assert traits.demand(hook, NOW) == EVERY_STEP
    assert not traits.of(hook).bounds_training


def test_a_method_that_a_class_is_given_later_counts():
    hook = logging_hook(_log_tensors=timer_method)
    assert traits.demand(hook, NOW) == Demand(steps=9)
    type(hook).after_run = timer_method
    assert traits.demand(hook, NOW) == EVERY_STEP


class OddSteps(hooks_lib.SecondOrStepTimer):
    def should_trigger_for_step(self, step):
        return step % 2 == 1


@pytest.mark.parametrize("hook_type", [*WITH_TIMERS, hooks_lib.LoggingTensorHook])
def test_a_timer_of_ones_own_may_trigger_at_any_step(made, hook_type):
    hook = made(hook_type)
    hook._timer.should_trigger_for_step = lambda step: True
    assert traits.demand(hook, NOW) == EVERY_STEP
    hook._timer = OddSteps(every_steps=10)
    hook._timer.update_last_triggered_step(TRIGGERED)
    assert traits.demand(hook, NOW) == EVERY_STEP


def test_who_would_log_at_the_end_may_get_another_timer():
    hook = counted(hooks_lib.LoggingTensorHook({}, at_end=True))
    hook._timer.should_trigger_for_step = lambda step: True
    assert traits.demand(hook, NOW) == EVERY_STEP


def test_a_turn_without_the_timer_is_due_at_every_step():
    """`_log_tensors` updates the timer: where it is replaced, and does not, nobody else does."""
    hook = logging_hook(_log_tensors=timer_method)
    hook._timer.reset()
    assert traits.demand(hook, NOW) == EVERY_STEP
    hook._iter_count, hook._timer._last_triggered_step = 40, 20
    assert traits.demand(hook, NOW) == EVERY_STEP


@pytest.mark.parametrize("steps", [5, None])
@pytest.mark.parametrize("base", [tf.train.SessionRunHook, StopWithChiefHook])
def test_a_hooks_own_word_counts_first(base, steps):
    hook = base()
    hook.steps_until_control = lambda global_step: steps and steps * global_step
    assert traits.demand(hook, 3) == Demand(steps=steps and 15)


def test_tensorflows_hooks_are_known():
    """A hook that TensorFlow adds is seen here, before it slows anybody down."""
    unknown = {hooks_lib.FeedFnHook, hooks_lib.GlobalStepWaiterHook}
    hooks = {
        each
        for each in vars(hooks_lib).values()
        if isinstance(each, type)
        and issubclass(each, tf.train.SessionRunHook)
        and each.__module__ == hooks_lib.__name__
        and not each.__name__.startswith("_")
    }
    assert hooks - set(traits.ROWS) == unknown
