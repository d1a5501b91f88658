"""Calls in a worker thread, while the main thread handles signals."""

import threading

import pytest

from tpu_estimator_compat.engine.signals import process_exit, worker_thread


@pytest.fixture
def ends(monkeypatch):
    """How often the process was told to end without waiting."""
    ends = []
    monkeypatch.setattr(process_exit, "end_without_waiting", lambda: ends.append(None))
    monkeypatch.setattr(worker_thread, "_PATIENCE", 0.1)
    monkeypatch.setattr(worker_thread, "_INTERVAL", 0.01)
    return ends


def test_results_and_errors_come_back(ends):
    thread = worker_thread.WorkerThread(lambda: False)
    threads = {thread.run(threading.get_ident) for _ in range(3)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    with pytest.raises(ZeroDivisionError):
        thread.run(lambda: 1 // 0)
    assert thread.run(lambda: 5) == 5
    thread.close()
    assert not ends


def test_a_blocked_call_is_given_up_after_a_while(ends):
    blocked = threading.Event()
    thread = worker_thread.WorkerThread(blocked.is_set)

    def block():
        blocked.set()
        released.wait()

    released = threading.Event()
    with pytest.raises(worker_thread.StillBlockedError, match="no element"):
        thread.run(block)
    assert len(ends) == 1
    released.set()


def test_a_call_that_returns_in_time_is_not_given_up(ends, monkeypatch):
    monkeypatch.setattr(worker_thread, "_PATIENCE", 30.0)
    thread = worker_thread.WorkerThread(lambda: True)
    assert thread.run(lambda: threading.Event().wait(0.05) or "late") == "late"
    assert not ends


def test_calls_of_another_thread_run_there(ends):
    found = []
    thread = worker_thread.WorkerThread(lambda: True)
    other = threading.Thread(target=lambda: found.append(thread.run(threading.get_ident)))
    other.start()
    other.join()
    assert found == [other.ident]
