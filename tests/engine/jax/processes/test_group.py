import concurrent.futures
import threading
import time

import jax
import pytest

from tpu_estimator_compat.engine.cluster.group import MachineLostError, State
from tpu_estimator_compat.engine.jax.processes import group as process_group
from tpu_estimator_compat.engine.jax.processes.group import Processes


class Store:
    """What JAX's client does, for several processes at once."""

    def __init__(self):
        self.values, self.changed = {}, threading.Condition()
        self.error = None

    def key_value_set(self, key, value):
        with self.changed:
            if key in self.values:
                raise jax.errors.JaxRuntimeError("ALREADY_EXISTS: key")
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

    def key_value_dir_get(self, folder):
        with self.changed:
            return [(key, value) for key, value in self.values.items() if key.startswith(folder)]

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
    monkeypatch.setattr(process_group.distributed.global_state, "client", store)
    monkeypatch.setattr(process_group, "_PATIENCE", 10)
    monkeypatch.setattr(process_group, "time", Clock)
    return store


def together(*calls):
    """What the calls return, made at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(30) for future in [pool.submit(call) for call in calls]]


def test_all_get_the_records_of_all_and_nothing_is_left_behind(store):
    group = [Processes(3, index) for index in range(3)]

    def talk(process):
        time.sleep(0.05 * process.index)
        return [process.exchange({"n": (process.index, turn)}) for turn in range(20)]

    for found in together(*(lambda p=p: talk(p) for p in group)):
        assert found == [[{"n": [i, turn]} for i in range(3)] for turn in range(20)]
    assert len(store.values) == 3


def test_the_chief_tells_a_number(store):
    group = [Processes(2, index) for index in range(2)]
    assert [process.is_chief for process in group] == [True, False]
    assert together(*(lambda p=p: p.tell(7 + p.index, "step") for p in group)) == [7, 7]


def test_a_broken_connection_is_a_lost_process(store):
    store.error = "UNAVAILABLE: socket closed"
    with pytest.raises(MachineLostError, match=r"failed or cannot be reached.*socket closed"):
        Processes(2, 0).exchange({})


def test_a_process_ends_where_others_would_wait_for_its_step(store, monkeypatch):
    def end(code):
        raise SystemExit(code)

    monkeypatch.setattr(process_group.os, "_exit", end)
    monkeypatch.setattr(process_group, "_LONGEST_WAIT", 0)
    alone = Processes(2, 0)
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
    Processes(2, 1).say({})
    assert_watch_ends(lambda: Processes(2, 0).fail(owes_step=True))


def test_a_process_goes_on_where_the_connection_was_shut_down(store, monkeypatch):
    def fail():
        Processes(2, 0).fail(owes_step=True)
        monkeypatch.setattr(process_group.distributed.global_state, "client", None)

    assert_watch_ends(fail)


def of_two(first, second):
    """What two processes find in calls of `together`."""
    group = [Processes(2, index) for index in range(2)]
    return together(lambda: first(group[0]), lambda: second(group[1]))


def test_processes_that_come_together_share_a_call(store):
    def late(process):
        time.sleep(0.2)
        return process.together("eval"), process.together("infer")

    both = lambda process: (process.together("eval"), process.together("infer"))  # noqa: E731
    assert of_two(both, late) == [(True, True)] * 2


def test_other_calls_are_not_shared_and_later_ones_are(store):
    def one(process):
        return process.together("eval"), process.together("infer")

    def other(process):
        return process.together("infer"), process.together("infer")

    assert of_two(one, other) == [(False, True)] * 2


def test_nothing_is_shared_with_a_process_that_trains_on(store):
    """The chief evaluates between two trainings, and the other goes on to the second."""

    def chief(process):
        return process.together("eval"), len(process.exchange({}))

    def other(process):
        time.sleep(0.1)
        return len(process.exchange({}))

    assert of_two(chief, other) == [(False, 2), 2]


def test_nothing_is_shared_with_a_process_that_has_ended(store):
    process_group._say_that_it_ends(1)
    assert not Processes(2, 0).together("eval")


def test_a_process_that_does_not_come_is_not_waited_for_for_ever(store, monkeypatch, caplog):
    monkeypatch.setattr(process_group, "_LONGEST_WAIT", 0)
    group = [Processes(2, index) for index in range(2)]
    assert not group[1].together("eval")
    assert "Of 2 processes 1 came to eval together within 0 s: each does it alone." in caplog.text
    assert not group[0].together("eval")  # it comes later, and is told so


def test_values_are_put_together_wherever_the_others_are(store):
    group = [Processes(3, index) for index in range(3)]
    served = []

    def serve(process):
        def put_together(names):
            served.append((process.index, tuple(names)))
            return dict.fromkeys(names, 7)

        return put_together

    for process in group:
        process.servers.append(serve(process))
    asks = lambda p: (p.values_of(["b"]), p.exchange({"n": 0}))  # noqa: E731
    found = together(
        lambda: asks(group[0]),
        lambda: group[1].exchange({"n": 1}),
        lambda: (group[2].values_of(["a"]), group[2].exchange({"n": 2})),
    )
    records = [{"n": 0}, {"n": 1}, {"n": 2}]
    assert found == [({"a": 7, "b": 7}, records), records, ({"a": 7, "b": 7}, records)]
    assert sorted(served) == [(i, ("a", "b")) for i in range(3)]


def test_values_are_not_waited_for_where_a_process_has_failed(store):
    group = [Processes(2, index) for index in range(2)]
    group[0].servers.append(lambda names: pytest.fail("the others do not answer"))
    group[1].say({"state": State.FAILED})
    with pytest.raises(MachineLostError, match="machine 1 of 2 failed"):
        group[0].values_of(["a"])


def test_a_failure_that_all_have_met_is_told_once(store):
    """A second record would be taken for one of the next training."""
    group = [Processes(2, index) for index in range(2)]
    group[1].fail(owes_step=False)
    with pytest.raises(MachineLostError, match="machine 1 of 2 failed"):
        group[0].values_of(["a"])
    group[0].fail(owes_step=False)
    found = together(*(lambda p=p: p.exchange({"n": p.index}) for p in group))
    assert found == [[{"n": 0}, {"n": 1}]] * 2
