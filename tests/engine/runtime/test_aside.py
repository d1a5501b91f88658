"""Calls in a thread, for a caller that hears signals."""

import threading

import pytest

from tpu_estimator_compat.engine.runtime import aside


@pytest.fixture
def ends(monkeypatch):
    """How often the process was told not to wait at its end."""
    ends = []
    monkeypatch.setattr(aside, "end_without_waiting", lambda: ends.append(None))
    monkeypatch.setattr(aside, "_PATIENCE", 0.1)
    monkeypatch.setattr(aside, "_INTERVAL", 0.01)
    return ends


def test_results_and_errors_come_back(ends):
    call = aside.Aside(lambda: False)
    threads = {call(threading.get_ident) for _ in range(3)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    with pytest.raises(ZeroDivisionError):
        call(lambda: 1 // 0)
    assert call(lambda: 5) == 5
    call.close()
    assert not ends


def test_who_is_to_stop_waits_for_a_while_alone(ends):
    blocked = threading.Event()
    call = aside.Aside(blocked.is_set)

    def block():
        blocked.set()
        released.wait()

    released = threading.Event()
    with pytest.raises(aside.StillBlockedError, match="no element"):
        call(block)
    assert len(ends) == 1
    released.set()


def test_a_call_that_returns_in_time_is_not_given_up(ends, monkeypatch):
    monkeypatch.setattr(aside, "_PATIENCE", 30.0)
    call = aside.Aside(lambda: True)
    assert call(lambda: threading.Event().wait(0.05) or "late") == "late"
    assert not ends


def test_in_another_thread_calls_are_made_at_once(ends):
    found = []
    call = aside.Aside(lambda: True)
    other = threading.Thread(target=lambda: found.append(call(threading.get_ident)))
    other.start()
    other.join()
    assert found == [other.ident]
