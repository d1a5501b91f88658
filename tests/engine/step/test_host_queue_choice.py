"""Which host calls wait in a queue and which are a part of their step, and the change between."""

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn

from tpu_estimator_compat.engine.functions.tuning import Tuning
from tpu_estimator_compat.engine.step.host_queue import HostCallQueue
from tpu_estimator_compat.engine.step.program import StepProgram

from .host_call_models import Calls, model_of

TRIAL = 100
LOOP = 20
REST = 40
# The first batch of calls is not timed, and may fill the queue; as many steps may be ahead of the
# calls when those are judged; the change waits for the end of a loop; the rest follows it.
STEPS = TRIAL + 4 * LOOP + REST
SLOW = 10 * Tuning().quick_call


@pytest.fixture
def traces(monkeypatch):
    """Grows by one whenever a step is traced."""
    found = []
    build = StepProgram.__call__

    def count(self, *args):
        found.append(self)
        return build(self, *args)

    monkeypatch.setattr(StepProgram, "__call__", count)
    return found


@pytest.fixture
def undisturbed(tuned):
    """Other work on the machine makes no quick call look slow, and steps run ahead by one loop."""
    tuned(quick_call=60.0, queue_calls=LOOP, trial_calls=TRIAL)


@pytest.fixture
def short_trial(tuned):
    """Calls are judged after fewer than by default."""
    tuned(trial_calls=TRIAL)


def train(calls, tmp_path, through="train", steps=STEPS, examples=train_input_fn):
    model_fn = model_of(calls, calls.in_step)
    estimator = make_estimator(tmp_path, model_fn, use_tpu=True, loop=LOOP)
    if through == "train":
        estimator.train(examples, steps=steps)
        return
    model = estimator.keras_model(examples)
    model.fit(examples({"batch_size": 16}), steps_per_epoch=steps, verbose=0)


@pytest.mark.parametrize("through", ["train", "fit"])
def test_quick_calls_come_to_be_made_in_their_steps(tmp_path, through, traces, undisturbed):
    calls = Calls()
    train(calls, tmp_path, through)
    assert calls.made == list(range(1, STEPS + 1))
    assert max(calls.behind[:LOOP]) > 0
    assert calls.behind[-REST:] == [0] * REST
    assert len(traces) <= 3  # with a queue, without, and for the other executor


def test_slow_calls_go_on_while_later_steps_run(tmp_path, traces, short_trial):
    calls = Calls(seconds=SLOW)
    train(calls, tmp_path)
    assert calls.made == list(range(1, STEPS + 1))
    assert max(calls.behind[-REST:]) > 0
    assert len(traces) <= 2  # one for each executor


def test_the_time_of_a_trial_is_that_of_the_calls(tmp_path, monkeypatch, short_trial):
    judge, found = HostCallQueue._judge, []

    def note(self, calls, seconds):
        found.append((calls, seconds))
        judge(self, calls, seconds)

    monkeypatch.setattr(HostCallQueue, "_judge", note)
    train(Calls(seconds=SLOW), tmp_path, steps=60)
    assert found
    assert all(seconds >= calls * SLOW for calls, seconds in found)


@pytest.mark.parametrize("last", [TRIAL - 1, TRIAL + 1, STEPS - 3])
def test_the_end_of_the_data_is_exact_around_the_change(tmp_path, last, undisturbed):
    calls = Calls()
    train(calls, tmp_path, examples=lambda params: train_input_fn(params).take(last))
    assert calls.made == list(range(1, last + 1))


def test_training_that_goes_on_goes_on_with_its_calls(tmp_path, undisturbed):
    calls = Calls()
    train(calls, tmp_path)
    train(calls, tmp_path)
    assert calls.made == list(range(1, 2 * STEPS + 1))


@pytest.mark.parametrize("failing", [TRIAL - 20, STEPS - 10])
def test_an_error_reaches_the_caller_before_and_after_the_change(tmp_path, failing, undisturbed):
    calls = Calls(fails_at=failing)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"host call of step {failing}"):
        train(calls, tmp_path)
    assert calls.made == list(range(1, failing))
