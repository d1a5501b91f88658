"""The protocol of several machines, followed by runners in threads of this process."""

import concurrent.futures
import contextlib
import threading

import numpy as np
import pytest

from tpu_estimator_compat.engine.cluster.group import Group, MachineLostError, State
from tpu_estimator_compat.engine.loop.group_runner import GroupRunner


class Places:
    """Where machines of one process meet: a barrier, and what each has said."""

    def __init__(self, count):
        self.barrier = threading.Barrier(count, timeout=10)
        self.said = [None] * count


class Threads(Group):
    """A transport between threads."""

    def __init__(self, places, index):
        self.count, self.index, self.servers = len(places.said), index, []
        self._places = places
        self.failed_at = []

    def _all_say(self, said):
        self._places.said[self.index] = said
        self._places.barrier.wait()
        found = list(self._places.said)
        self._places.barrier.wait()
        return found

    def meet(self, state, place):
        while True:
            found = self._all_say((place, state))
            assert len({place for place, _ in found}) == 1, found
            states = np.asarray([state for _, state in found])
            if state == State.ASKING or State.ASKING not in states:
                return states
            self.servers[-1]()

    def fail(self, place, *, owes_step):
        self.failed_at.append((place, owes_step))
        self._all_say((place, State.FAILED))

    def numbers(self, number, name):
        return np.asarray([number for _, number in self._all_say((name, number))])

    def from_chief(self, value, name):
        raise NotImplementedError


class Runner(GroupRunner):
    """A runner of steps that do nothing."""

    def __init__(self, group, served):
        super().__init__(group)
        self._serve(lambda: served.append(group.index))

    def _connected(self):
        return contextlib.nullcontext()

    def start(self, graph="graph"):
        self._start(graph)

    def step(self, state=State.READY):
        return self._agree(self._group.meet(state, self._place))

    def ask(self):
        self._ask()


def on_two(first, second):
    """What two machines return or raise, the ones that served, and their groups."""
    places, served = Places(2), []
    groups = [Threads(places, index) for index in range(2)]

    def call(machine, group):
        try:
            return machine(Runner(group, served))
        except (MachineLostError, ValueError) as error:
            return f"{type(error).__name__}: {error}"

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        calls = zip((first, second), groups, strict=True)
        found = [future.result(30) for future in [pool.submit(call, *c) for c in calls]]
    return found, served, groups


def steps_until(state, *, asks=False):
    """A machine that makes two steps, and a third if it may."""

    def machine(runner):
        runner.start()
        runner.step(), runner.step()
        if asks:
            runner.ask()
        if state is not State.LEAVING:
            assert not runner.step(state)
        runner.leave()
        return runner.states.tolist()

    return machine


def test_all_end_where_all_have_no_more_data():
    found, _, _ = on_two(steps_until(State.OUT_OF_DATA), steps_until(State.OUT_OF_DATA))
    assert found == [[State.OUT_OF_DATA] * 2] * 2


def test_all_end_where_one_leaves():
    found, _, _ = on_two(steps_until(State.LEAVING), steps_until(State.READY))
    assert found == [[State.LEAVING, State.READY]] * 2


def test_uneven_data_is_an_error_of_all():
    found, _, _ = on_two(steps_until(State.OUT_OF_DATA), steps_until(State.READY))
    for error in found:
        assert error.startswith("ValueError: The data of machine(s) [0] ended while")


def test_the_others_serve_one_that_asks_before_a_step_of_theirs():
    asking = steps_until(State.OUT_OF_DATA, asks=True)
    found, served, groups = on_two(asking, steps_until(State.OUT_OF_DATA))
    assert found == [[State.OUT_OF_DATA] * 2] * 2
    assert served == [1]
    assert groups[0].servers == groups[1].servers == []


def test_the_others_serve_one_that_saves_when_all_have_stopped():
    def saving(runner):
        runner.start()
        runner.step(State.OUT_OF_DATA)
        runner.ask()
        runner.leave()

    def other(runner):
        runner.start()
        runner.step(State.OUT_OF_DATA)
        runner.leave()

    _, served, _ = on_two(saving, other)
    assert served == [1]


def test_graphs_that_differ_are_an_error_of_all():
    found, _, _ = on_two(lambda r: r.start("a"), lambda r: r.start("b"))
    for error in found:
        assert error.startswith("ValueError: model_fn built another graph on machine(s) [1] than")


@pytest.mark.parametrize(
    ("place", "before"),
    [
        ("at the start", lambda r: None),
        ("before a step", lambda r: r.start()),
        ("at the end", lambda r: (r.start(), r.step(State.OUT_OF_DATA))),
    ],
)
def test_one_that_fails_tells_it_where_the_others_are(place, before):
    def failing(runner):
        before(runner)
        runner.fail()

    def other(runner):
        before(runner)
        try:
            runner.leave() if runner._started else runner.start()
        finally:
            runner.fail()  # says nothing: all know that one has failed

    found, _, groups = on_two(failing, other)
    assert found[1].startswith("MachineLostError: This machine stopped because machine 0 of 2")
    assert groups[0].failed_at == [(place, False)]
    assert groups[1].failed_at == []
