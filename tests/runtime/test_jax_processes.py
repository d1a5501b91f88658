"""What processes tell each other, over a store of keys and values in this process."""

import concurrent.futures
import threading
import time

import jax
import pytest

from tpu_estimator_compat.runtime import jax_processes
from tpu_estimator_compat.runtime.jax_processes import JaxProcesses
from tpu_estimator_compat.runtime.workers import MachineLostError


class Store:
    """What JAX's client does, for several processes at once."""

    def __init__(self):
        self.values, self.changed = {}, threading.Condition()
        self.error = None

    def key_value_set(self, key, value):
        with self.changed:
            assert key not in self.values
            self.values[key] = value
            self.changed.notify_all()

    def blocking_key_value_get(self, key, timeout_in_ms):
        if self.error:
            raise jax.errors.JaxRuntimeError(self.error)
        with self.changed:
            if not self.changed.wait_for(lambda: key in self.values, timeout_in_ms / 1000):
                raise jax.errors.JaxRuntimeError("DEADLINE_EXCEEDED: no such key")
            return self.values[key]

    def key_value_try_get(self, key):
        if key not in self.values:
            raise jax.errors.JaxRuntimeError("NOT_FOUND: no such key")
        return self.values[key]

    def key_value_delete(self, key):
        with self.changed:
            for name in [name for name in self.values if name.startswith(key + "/")]:
                del self.values[name]


class Clock:
    """The time, where a second's sleep takes a hundredth."""

    monotonic = time.monotonic

    @staticmethod
    def sleep(seconds):
        time.sleep(0.01 * seconds)


@pytest.fixture
def store(monkeypatch):
    store = Store()
    monkeypatch.setattr(jax_processes.distributed.global_state, "client", store)
    monkeypatch.setattr(jax_processes, "_PATIENCE", 10)
    monkeypatch.setattr(jax_processes, "time", Clock)
    return store


def together(*calls):
    """What the calls return, made at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(30) for future in [pool.submit(call) for call in calls]]


def test_all_get_the_records_of_all_and_nothing_is_left_behind(store):
    group = [JaxProcesses(3, index) for index in range(3)]

    def talk(process):
        time.sleep(0.05 * process.index)
        return [process.exchange({"n": (process.index, turn)}) for turn in range(20)]

    for found in together(*(lambda p=p: talk(p) for p in group)):
        assert found == [[{"n": [i, turn]} for i in range(3)] for turn in range(20)]
    assert len(store.values) == 3


def test_the_chief_tells_a_number(store):
    group = [JaxProcesses(2, index) for index in range(2)]
    assert [process.is_chief for process in group] == [True, False]
    assert together(*(lambda p=p: p.tell(7 + p.index, "step") for p in group)) == [7, 7]


def test_a_broken_connection_is_a_lost_process(store):
    store.error = "UNAVAILABLE: socket closed"
    with pytest.raises(MachineLostError, match=r"failed or cannot be reached.*socket closed"):
        JaxProcesses(2, 0).exchange({})


def test_a_process_ends_where_others_would_wait_for_its_step(store, monkeypatch):
    def end(code):
        raise SystemExit(code)

    monkeypatch.setattr(jax_processes.os, "_exit", end)
    monkeypatch.setattr(jax_processes, "_LONGEST_WAIT", 0)
    alone = JaxProcesses(2, 0)
    alone.say({})
    with pytest.raises(SystemExit, match="1"):
        alone._end_unless_met(0)


def assert_watch_ends(start):
    """That the thread which `start` starts comes to its end."""
    before = set(threading.enumerate())
    start()
    [watch] = [t for t in set(threading.enumerate()) - before if "_end_unless_met" in t.name]
    watch.join(30)
    assert not watch.is_alive()


def test_a_process_goes_on_where_others_have_come(store):
    JaxProcesses(2, 1).say({})
    assert_watch_ends(lambda: JaxProcesses(2, 0).fail({}, others_may_wait=True))


def test_a_process_goes_on_where_the_connection_was_shut_down(store, monkeypatch):
    def fail():
        JaxProcesses(2, 0).fail({}, others_may_wait=True)
        monkeypatch.setattr(jax_processes.distributed.global_state, "client", None)

    assert_watch_ends(fail)
