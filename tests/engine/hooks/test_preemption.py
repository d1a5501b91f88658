"""SIGTERM, Ctrl-C: training ends with a checkpoint, then whoever had the signal gets it."""

import os
import signal
import threading
import time

import keras
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn

STEPS = 10**8


@pytest.fixture(autouse=True)
def short_pieces(tuned):
    """Else the signal would be answered up to a second after it came."""
    tuned(piece=0.05)


def kill_once(steps_are_made, number):
    """Sends a signal to this process, from another thread, once that says that steps are made."""

    def watch():
        while not steps_are_made():
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    threading.Thread(target=watch, daemon=True).start()


class Kill(tf.train.SessionRunHook):
    """Sends a signal to this process in the middle of a run of steps."""

    def __init__(self, number=signal.SIGTERM):
        self.ended = False
        self._number = number
        self._started = False

    def steps_until_control(self, global_step):
        return None

    def before_run(self, run_context):
        if not self._started:
            self._started = True
            step = run_context.session.global_step_variable()
            kill_once(lambda: step.numpy() > 0, self._number)

    def end(self, session):
        self.ended = True


class KillFit(keras.callbacks.Callback):
    def __init__(self, when, number):
        super().__init__()
        self._when = when
        self._number = number
        self.ended = False

    def on_train_begin(self, logs=None):
        if self._when == "train":
            [step] = [v for v in self.model.variables if v.path == "global_step"]
            kill_once(lambda: step.numpy() > 0, self._number)

    def on_test_begin(self, logs=None):
        if self._when == "test":
            threading.Timer(0.2, os.kill, (os.getpid(), self._number)).start()

    def on_train_end(self, logs=None):
        self.ended = True


@pytest.fixture(autouse=True)
def before():
    """The signals' handlers, as in a foreground process; puts them back."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    handlers = {number: signal.getsignal(number) for number in numbers}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield {number: signal.getsignal(number) for number in numbers}
    for number, handler in handlers.items():
        signal.signal(number, handler)


ENDS = pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)


@ENDS
@pytest.mark.parametrize("when", ["train", "test"])
@pytest.mark.usefixtures("quick_release")
def test_a_signal_saves_and_exits_from_fit(tmp_path, before, when, number, error):
    callback = KillFit(when, number)
    estimator = make_estimator(tmp_path, use_tpu=True, loop=STEPS)
    model = estimator.keras_model(train_input_fn)
    data = train_input_fn({"batch_size": 16}).repeat()
    more = {"steps_per_epoch": STEPS}
    if when == "test":
        more = {"steps_per_epoch": 5, "validation_data": data, "validation_steps": STEPS}
    with pytest.raises(error) as exited:
        model.fit(data, epochs=3, callbacks=[callback], verbose=0, **more)
    assert number == signal.SIGINT or exited.value.code == 143
    assert callback.ended
    assert signal.getsignal(number) == before[number]
    step = int(estimator.get_variable_value("global_step"))
    assert step == 5 if when == "test" else 0 < step < STEPS, step
    assert estimator.latest_checkpoint().endswith(f"-{step}")


@ENDS
@pytest.mark.parametrize("use_tpu", [False, True])
def test_a_signal_saves_and_exits(tmp_path, before, caplog, use_tpu, number, error):
    hook = Kill(number)
    # A loop of TPU semantics would otherwise run for hours.
    estimator = make_estimator(tmp_path, use_tpu=use_tpu, loop=STEPS)
    with pytest.raises(error) as exited:
        estimator.train(train_input_fn, hooks=[hook], max_steps=STEPS)
    assert number == signal.SIGINT or exited.value.code == 143
    assert hook.ended
    assert signal.getsignal(number) == before[number]
    step = int(estimator.get_variable_value("global_step"))
    assert 0 < step < STEPS
    assert estimator.latest_checkpoint().endswith(f"-{step}")
    told = [line for line in caplog.messages if "Ctrl-C again ends it at once" in line]
    assert len(told) == (number == signal.SIGINT)


class Press(tf.train.SessionRunHook):
    """Presses Ctrl-C some times in one of its methods."""

    def __init__(self, method, times):
        self.calls = []
        self._method, self._times = method, times

    def _called(self, method):
        self.calls.append(method)
        for _ in range(self._times * (method == self._method)):
            os.kill(os.getpid(), signal.SIGINT)

    def after_create_session(self, session, coord):
        self._called("after_create_session")

    def after_run(self, run_context, run_values):
        self._called("after_run")

    def end(self, session):
        self._called("end")


def test_a_second_ctrl_c_ends_at_once(tmp_path, before, caplog):
    estimator = make_estimator(tmp_path)
    press = Press("after_run", 2)
    with pytest.raises(KeyboardInterrupt):
        estimator.train(train_input_fn, hooks=[press], max_steps=STEPS)
    assert press.calls == ["after_create_session", "after_run"]
    assert estimator.latest_checkpoint().endswith("-0")
    assert any("steps since the last checkpoint are lost" in m for m in caplog.messages)
    assert signal.getsignal(signal.SIGINT) == before[signal.SIGINT]


def test_ctrl_c_before_the_first_step_ends_at_once(tmp_path, before):
    press = Press("after_create_session", 1)
    with pytest.raises(KeyboardInterrupt):
        make_estimator(tmp_path).train(train_input_fn, hooks=[press], max_steps=STEPS)
    assert press.calls == ["after_create_session"]
    assert signal.getsignal(signal.SIGINT) == before[signal.SIGINT]


def test_a_handler_of_the_script_keeps_ctrl_c(tmp_path):
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, hooks=[Press("after_run", 1)], steps=3)
    assert seen == [signal.SIGINT] * 3
    assert estimator.get_variable_value("global_step") == 3


def test_earlier_handlers_are_called_after_the_checkpoint(tmp_path):
    estimator = make_estimator(tmp_path)
    seen = []

    def mine(signum, frame):
        seen.append((signum, estimator.latest_checkpoint()))

    signal.signal(signal.SIGTERM, mine)
    assert estimator.train(train_input_fn, hooks=[Kill()], max_steps=STEPS) is estimator
    assert seen == [(signal.SIGTERM, estimator.latest_checkpoint())]
    assert not seen[0][1].endswith("-0")
    assert signal.getsignal(signal.SIGTERM) == mine


def test_a_handler_that_a_hook_sets_wins(tmp_path):
    seen = []

    class Own(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            signal.signal(signal.SIGTERM, mine)

        def steps_until_control(self, global_step):
            return None

        def after_run(self, run_context, run_values):
            if seen:
                run_context.request_stop()

    def mine(signum, frame):
        seen.append(signum)

    make_estimator(tmp_path).train(train_input_fn, hooks=[Own(), Kill()], max_steps=STEPS)
    assert seen == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) == mine


def test_an_ignored_signal_stays_ignored(tmp_path):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    estimator = make_estimator(tmp_path)
    os.kill(os.getpid(), signal.SIGTERM)
    estimator.train(train_input_fn, steps=50)
    assert estimator.get_variable_value("global_step") == 50
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN


def test_training_in_another_thread_leaves_signals_alone(tmp_path):
    estimator = make_estimator(tmp_path)
    thread = threading.Thread(target=estimator.train, args=(train_input_fn,), kwargs={"steps": 5})
    thread.start()
    thread.join()
    assert estimator.get_variable_value("global_step") == 5


class Sends(tf.train.SessionRunHook):
    """Sends signals to this process in `begin`, or after the fifth step."""

    def __init__(self, *, at_begin=False, times=1):
        self.at_begin, self.times = at_begin, times
        self.steps = 0

    def send(self):
        for _ in range(self.times):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)

    def begin(self):
        if self.at_begin:
            self.send()

    def after_run(self, run_context, run_values):
        self.steps += 1
        if self.steps == 5 and not self.at_begin:
            self.send()


@pytest.mark.parametrize(
    ("hook", "steps", "calls"),
    [(Sends(at_begin=True), 1, 1), (Sends(), 5, 1), (Sends(times=2), 5, 2)],
    ids=["before the first step", "once", "twice"],
)
def test_a_handler_that_returns_leaves_training_to_end(hook, steps, calls, tmp_path, caplog):
    called = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: called.append(number))
    try:
        estimator = make_estimator(tmp_path, use_tpu=False)
        estimator.train(train_input_fn, hooks=[hook], steps=40)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert hook.steps == steps
    assert called == [signal.SIGTERM] * calls
    assert estimator.latest_checkpoint().endswith(f"-{steps}")
    assert "lost" not in caplog.text


@pytest.mark.slow
def test_a_handler_set_by_a_hook_is_no_blocked_step(tmp_path):
    class Own(Sends):
        def after_create_session(self, session, coord):
            signal.signal(signal.SIGTERM, lambda number, frame: None)

        def after_run(self, run_context, run_values):
            super().after_run(run_context, run_values)
            time.sleep(0.3)

    hook, before = Own(), signal.getsignal(signal.SIGTERM)
    try:
        make_estimator(tmp_path, use_tpu=False).train(train_input_fn, hooks=[hook], steps=25)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert hook.steps == 25


@pytest.mark.slow
def test_a_training_within_another_has_its_time(tmp_path, before):
    class Slow(Sends):
        ended = False

        def end(self, session):
            time.sleep(7)
            self.ended = True

    class Trains(tf.train.SessionRunHook):
        inner = Slow()

        def after_run(self, run_context, run_values):
            estimator = make_estimator(tmp_path / "inner", use_tpu=False)
            estimator.train(train_input_fn, hooks=[self.inner], steps=100)

    with pytest.raises(SystemExit):
        make_estimator(tmp_path / "outer", use_tpu=False).train(
            train_input_fn, hooks=[Trains()], steps=10
        )
    assert Trains.inner.ended
