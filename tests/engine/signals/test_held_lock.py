"""Signals while C code holds Python's lock: what is set for them, and taken back."""

import ctypes
import os
import signal
import time

import pytest

from tpu_estimator_compat.engine.hooks.preemption import Preemption
from tpu_estimator_compat.engine.signals import held_lock


def actions():
    """The handlers in C of SIGTERM, SIGALRM and SIGSTKFLT, and the open pipes."""
    handlers = []
    for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGSTKFLT):
        action = ctypes.create_string_buffer(256)
        ctypes.CDLL(None).sigaction(number, None, action)
        handlers.append(action.raw[:8])
    paths = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    pipes = {os.readlink(path) for path in paths if os.path.lexists(path)}
    return handlers, {pipe for pipe in pipes if pipe.startswith("pipe:")}


@pytest.fixture
def handled():
    came = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    yield came
    signal.signal(signal.SIGTERM, before)


def wait_until(is_so):
    latest = time.monotonic() + 5
    while not is_so() and time.monotonic() < latest:
        time.sleep(0.01)
    print(actions())
    assert is_so()


def test_nothing_remains(handled):
    before = actions()
    with Preemption(computes_here=True) as outer:
        outer.begin_steps()
        inside = actions()[0]
        assert inside[2] != before[0][2]
        with Preemption(computes_here=True):
            assert actions()[0] == inside
        assert actions()[0] == inside
        os.kill(os.getpid(), signal.SIGTERM)
        assert outer.signalled
        wait_until(lambda: signal.getitimer(signal.ITIMER_REAL)[0] == 0)
    assert handled == [signal.SIGTERM]
    wait_until(lambda: actions() == before)


def test_an_alarm_that_is_set_late_is_taken_back(handled):
    """As by the last piece of a stack, after the pipe was read."""
    with Preemption(computes_here=True) as training:
        training.begin_steps()
        os.kill(os.getpid(), signal.SIGTERM)
        wait_until(lambda: held_lock._came)
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGSTKFLT)
            wait_until(lambda: signal.getitimer(signal.ITIMER_REAL)[0] == 0)
        os.kill(os.getpid(), signal.SIGSTKFLT)
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


IN_A_CHILD = """
import os, signal
from tpu_estimator_compat.engine.hooks.preemption import Preemption
handled = []
signal.signal(signal.SIGTERM, lambda number, frame: handled.append(number))
with Preemption(computes_here=True):
    child = os.fork()
    if not child:
        status = 1
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            status = 0 if handled and not signal.getitimer(signal.ITIMER_REAL)[0] else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
assert not handled
"""


def test_a_childs_signal_is_not_its_parents(forks):
    done = forks.run("-c", IN_A_CHILD)
    assert done.returncode == 0, done.stderr


def test_an_alarm_and_a_handler_of_the_users_stay(handled):
    signal.alarm(100)
    with Preemption(computes_here=True) as training:
        training.begin_steps()
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.alarm(0) > 90
    with Preemption(computes_here=True):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with Preemption(computes_here=True):
            pass
        ignored = actions()[0][0]
    assert actions()[0][0] == ignored
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    os.kill(os.getpid(), signal.SIGTERM)
    assert len(handled) == 1
