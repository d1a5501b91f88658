"""The tuner's decisions: size, form and executor of a call, by a clock that steps move."""

import math
from unittest import mock

import pytest

from tpu_estimator_compat.engine.functions import tuning
from tpu_estimator_compat.engine.functions.tuner import Call, Pace, Tuner
from tpu_estimator_compat.engine.functions.tuning import DEFAULT, SINGLE_THREADED, Tuning


class Machine:
    """Makes the calls of a tuner; their time is that of their steps.

    Attributes:
      step: seconds of a step; a dict where it depends on the executor.
      trace: seconds of the first call of each function, besides its steps.
      calls: what was called.
    """

    def __init__(self, step, may_choose=False, patience=0.0, trace=0.0, **numbers):
        self.step, self.trace = step, trace
        self.calls = []
        with mock.patch.object(tuning, "NUMBERS", Tuning(**numbers)):
            self.tuner = Tuner(may_choose, patience)
        self._traced = set()

    def loop(self, steps, **asked):
        """A loop of so many steps; the calls that it took."""
        before = len(self.calls)
        while steps:
            call = self.tuner.next(steps, **asked)
            took = self.step[call.executor] if isinstance(self.step, dict) else self.step
            function = call.executor, call.looped
            trace = 0.0 if function in self._traced else self.trace
            self._traced.add(function)
            self.tuner.record(call, call.steps, took * call.steps + trace)
            self.calls.append(call)
            steps -= call.steps
        return self.calls[before:]

    def lengths(self, steps, **asked):
        return [call.steps for call in self.loop(steps, **asked)]

    def executors(self, steps, **asked):
        return [call.executor for call in self.loop(steps, **asked)]


class TestPace:
    def test_steps_go_by_the_last_run(self):
        pace = Pace(1, 2)
        assert pace.steps_within(1.0) == 1
        pace.record(1, 30.0)  # traced and compiled
        assert pace.steps_within(1.0) == 2
        pace.record(2, 0.02)
        assert pace.steps_within(1.0) == 100
        pace.record(100, 4.0)
        assert pace.steps_within(1.0) == 25
        assert pace.steps_within(0.01) == 0

    def test_a_clock_may_stand_still(self):
        pace = Pace(1)
        pace.record(1, 0.0)
        assert pace.steps_within(1.0) > 1


class TestSize:
    def test_a_call_takes_about_a_piece(self):
        machine = Machine(0.01)
        assert machine.lengths(242) == [8, 100, 100, 34]
        assert machine.lengths(30) == [30]

    def test_the_speed_is_that_of_the_last_call(self):
        machine = Machine(0.01)
        machine.loop(108)
        machine.step = 0.1
        assert machine.lengths(130) == [100, 10, 10, 10]
        machine.step = 0.001
        assert machine.lengths(1000) == [10, 990]

    def test_a_step_that_takes_longer_is_a_piece(self):
        assert Machine(3.0, few_steps=2).lengths(5) == [2, 1, 1, 1]

    def test_a_call_that_made_no_steps_says_nothing(self):
        tuner = Tuner(may_choose=False)
        tuner.record(Call(8), 0, 0.5)
        assert tuner.next(100) == Call(8)

    def test_calls_are_short_where_something_waits_for_their_end(self):
        assert Machine(1e-3).lengths(158, waited_for=True) == [8, 50, 50, 50]

    def test_calls_are_short_while_executors_take_turns(self):
        machine = Machine({DEFAULT: 1e-4, SINGLE_THREADED: 2e-4}, may_choose=True)
        lengths = machine.lengths(100_000)
        timed = 2 + 5 + 2 * 5 - 1  # two that compile, the default alone, turns of both
        assert lengths[:3] == [8, 500, 500]  # 0.05 s each
        assert max(lengths[:timed]) == 500
        assert lengths[timed : timed + 2] == [5_000, 10_000]  # 1 s, by the time of the call before

    def test_numbers_are_the_caller_s(self):
        assert Machine(0.01, few_steps=4, piece=0.1).lengths(30) == [4, 10, 10, 6]


class TestForm:
    def test_a_first_call_of_one_step_has_no_loop(self):
        machine = Machine(1e-3, trace=0.1)
        found = [machine.loop(steps)[0].looped for steps in (1, 1, 2, 1)]
        assert found == [False, False, True, False]

    def test_a_later_call_of_one_step_takes_the_loop_that_exists(self):
        machine = Machine(1e-3, trace=0.1)
        assert [machine.loop(steps)[0].looped for steps in (2, 1)] == [True, True]

    def test_small_steps_get_no_loop_after_loops_as_slow_as_tracing(self):
        machine = Machine(1e-3, tracing=2.5e-3)
        machine.loop(2)
        assert [machine.loop(1)[0].looped for _ in range(6)] == [True] * 3 + [False] * 3

    def test_a_longer_run_starts_anew_until_the_function_exists(self):
        machine = Machine(1e-3, tracing=2.5e-3)
        found = [machine.loop(steps)[0].looped for steps in (2, 1, 1, 2, 1, 1, 1, 1)]
        assert found == [True] * 7 + [False]
        assert [machine.loop(steps)[0].looped for steps in (2, 1)] == [True, False]

    def test_larger_steps_stay_in_a_loop(self):
        machine = Machine(3e-3, tracing=2.5e-3)
        machine.loop(2)
        assert all(machine.loop(1)[0].looped for _ in range(20))

    @staticmethod
    def alone(seconds, patience, first=1.0):
        """How many steps of 200 are made alone before the first loop."""
        machine = Machine(seconds, patience=patience, trace=first - seconds)
        calls = machine.loop(200)
        assert all(call.steps == 1 for call in calls if not call.looped)
        return [*(call.looped for call in calls), True].index(True)

    def test_large_steps_run_alone_until_a_loop_pays_for_tracing(self):
        assert self.alone(0.5, 0.0) == 0
        assert self.alone(0.5, 10.0) == 1 + 10 / 0.5 + 1
        assert self.alone(0.5, math.inf) == 200
        assert self.alone(0.5, 10.0, first=100.0) == 200

    @pytest.mark.parametrize("patience", [10.0, math.inf])
    def test_small_steps_are_looped_after_the_time_of_the_first_call(self, patience):
        assert self.alone(1.9e-3, patience, first=0.17) == 1 + 90
        in_cache = self.alone(1.9e-3, patience, first=1.9e-3)
        assert in_cache == 1 + 53  # 0.1 s, which tracing takes

    def test_one_step_is_made_alone_where_the_function_for_it_exists(self):
        machine = Machine(1e-3, patience=math.inf)
        machine.loop(1000)
        assert machine.calls[-1].looped
        assert not machine.loop(1)[0].looped

    def test_the_patience_with_steps_of_many_operations(self):
        tuning = Tuning(many_ops=100, first_calls=10)
        assert [tuning.patience(ops, 1) for ops in (99, 100)] == [0.0, 10.0]
        assert [tuning.patience(ops, 2) for ops in (99, 100)] == [0.0, math.inf]


class TestExecutors:
    @pytest.mark.parametrize(
        ("default", "single", "expected"),
        [
            (2e-4, 1e-4, SINGLE_THREADED),
            (1e-4, 2e-4, DEFAULT),
            (1e-4, 0.95e-4, DEFAULT),  # too close to tell
            (5e-3, 1e-4, DEFAULT),  # busy steps: not worth a trial
        ],
    )
    @pytest.mark.parametrize("length", [1, 7, 50_000])
    def test_the_faster_is_kept(self, default, single, expected, length):
        machine = Machine({DEFAULT: default, SINGLE_THREADED: single}, True, tracing=1e9)
        for _ in range(max(1, 300 // length)):
            machine.loop(length)
        assert machine.executors(length)[-1] == expected
        tried = {call.executor for call in machine.calls}
        assert tried == ({DEFAULT} if default == 5e-3 else {DEFAULT, SINGLE_THREADED})

    def test_they_take_turns(self):
        machine = Machine({DEFAULT: 1e-4, SINGLE_THREADED: 1e-4}, may_choose=True, turns=2)
        single = [e == SINGLE_THREADED for e in machine.executors(50_000)]
        # One that compiles and two of the default, one that compiles, and turns.
        assert single[:7] == [False] * 3 + [True, True, False, True]
        assert not any(single[7:])

    def test_a_few_steps_are_a_run(self):
        machine = Machine({DEFAULT: 1e-4, SINGLE_THREADED: 1e-4}, True, turns=1, few_steps=8)
        single = [machine.executors(3)[0] == SINGLE_THREADED for _ in range(8)]
        # One that compiles and a run of three calls.
        assert single == [False] * 4 + [True] * 4
        assert machine.executors(3) == [DEFAULT]

    @pytest.mark.parametrize("single", [0.6e-4, 1.4e-4])
    @pytest.mark.parametrize(("start", "end"), [(0, 5), (4, 11), (8, 14)])
    def test_other_work_that_comes_and_goes_decides_nothing(self, single, start, end):
        """Calls `start` to `end` take four times as long."""
        machine = Machine({DEFAULT: 1e-4, SINGLE_THREADED: single}, may_choose=True)
        seconds = dict(machine.step)
        for call in range(20):
            times = 4 if start <= call < end else 1
            machine.step = {executor: times * each for executor, each in seconds.items()}
            machine.loop(100)
        assert {call.executor for call in machine.calls} == {DEFAULT, SINGLE_THREADED}
        assert machine.executors(100)[0] == (SINGLE_THREADED if single < 1e-4 else DEFAULT)

    def test_runs_that_nothing_took_turns_with_do_not_count(self, tuned):
        tuned(turns=2, few_steps=1)
        tuner = Tuner(may_choose=True)
        times = {
            DEFAULT: iter([1.0, 1e-4, 2e-4, 2e-4]),
            SINGLE_THREADED: iter([1.0, 1.5e-4, 1.5e-4]),
        }
        for _ in range(7):
            call = tuner.next(1)
            tuner.record(call, 1, next(times[call.executor]))
        assert tuner.next(1).executor == SINGLE_THREADED

    def test_one_choice_is_for_both_forms(self):
        machine = Machine({DEFAULT: 2e-4, SINGLE_THREADED: 1e-4}, True, tracing=1e-3)
        machine.loop(50_000)
        calls = [machine.loop(1)[0] for _ in range(30)]
        assert {call.executor for call in calls} == {SINGLE_THREADED}
        assert not calls[-1].looped

    def test_times_of_both_forms_are_not_compared(self, tuned):
        """A loop is quicker per step: no executor owes it the choice."""
        tuned(few_steps=1, turns=1)
        tuner = Tuner(may_choose=True, patience=math.inf)
        for looped, executor, seconds in (
            (False, DEFAULT, 1.0),
            (False, DEFAULT, 2e-4),
            (False, SINGLE_THREADED, 1.0),
            (True, DEFAULT, 1.0),
            (True, DEFAULT, 0.5e-4),
            (False, SINGLE_THREADED, 1e-4),
        ):
            tuner.record(Call(1, executor, looped), 1, seconds)
        assert tuner.next(1).executor == SINGLE_THREADED

    def test_nothing_is_tried_where_it_cannot_run(self):
        machine = Machine({DEFAULT: 1e-3, SINGLE_THREADED: 1e-6})
        assert set(machine.executors(20_000)) == {DEFAULT}

    def test_nothing_is_tried_before_steps_are_what_they_will_be(self):
        machine = Machine({DEFAULT: 1e-4, SINGLE_THREADED: 0.5e-4}, may_choose=True)
        assert set(machine.executors(50_000, trial=False)) == {DEFAULT}
        machine.loop(50_000)
        tried = [call.executor == SINGLE_THREADED for call in machine.calls]
        first = tried.index(True)
        assert tried[first : first + 4] == [True, True, False, True]  # turns, as ever
        assert machine.calls[-1].executor == SINGLE_THREADED


def test_the_capacity_of_a_queue():
    tuning = Tuning(queue_calls=10, queue_bytes=100)
    sizes = [0, 1, 10, 11, 20, 50, 51, 101]
    assert list(map(tuning.queue_capacity, sizes)) == [10, 10, 10, 9, 5, 2, None, None]
