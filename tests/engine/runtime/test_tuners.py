"""What the next call on the devices makes: every rule, by a clock that steps move."""

import pytest

from tpu_estimator_compat.engine.runtime.tuners import (
    Call,
    CollectTuner,
    ExecutorChoice,
    HostCallTuner,
    LoopTuner,
    PredictionTuner,
    RunTuner,
)
from tpu_estimator_compat.engine.runtime.tuning import DEFAULT, SINGLE_THREADED, Tuning


class Clock:
    """Stands still unless it is moved."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Machine:
    """Makes the calls that a LoopTuner wants; time is what its steps take.

    Attributes:
      calls: what was called.
      step: seconds of a step; a dict where it depends on the executor.
      overhead: seconds of a call besides its steps, outside what executors are told.
      host_calls: how many wait.
    """

    def __init__(self, step, may_choose=True, queue=None, overhead=0.0, **numbers):
        self.step, self.overhead, self.host_calls = step, overhead, 0
        self.calls = []
        self._clock = Clock()
        self._tuning = Tuning(clock=self._clock, **numbers)
        self.queue = queue and HostCallTuner(self._tuning, queue, may_choose=True)
        self.tuner = LoopTuner(self._tuning, may_choose, self.queue)

    def loop(self, steps):
        """A loop of so many steps, as DeviceLoop makes it; the calls that it took."""
        clock, before = self._tuning.clock, len(self.calls)
        while steps:
            call = self.tuner.next(steps)
            started = clock()
            took = self.step[call.executor] if isinstance(self.step, dict) else self.step
            self._clock.now += took * call.steps
            self.tuner.record_call(call, call.steps, clock() - started)
            self._clock.now += self.overhead
            self.tuner.record_piece(call.steps, clock() - started)
            self.calls.append(call)
            steps -= call.steps
        return self.calls[before:]

    def lengths(self, steps):
        return [call.steps for call in self.loop(steps)]

    def executors(self, steps):
        return [call.executor for call in self.loop(steps)]


def test_what_nothing_can_change():
    tuning = Tuning()
    with pytest.raises(AttributeError):
        tuning.piece = 2.0
    assert tuning == Tuning()


class TestPieces:
    def test_a_call_takes_about_a_piece(self):
        machine = Machine(0.01, may_choose=False)
        assert machine.lengths(250) == [16, 100, 100, 34]
        assert machine.lengths(30) == [30]

    def test_the_speed_is_that_of_the_last_call(self):
        machine = Machine(0.01, may_choose=False)
        machine.loop(116)
        machine.step = 0.1
        assert machine.lengths(130) == [100, 10, 10, 10]
        machine.step = 0.001
        assert machine.lengths(1000) == [10, 990]

    def test_what_belongs_to_a_call_counts(self):
        machine = Machine(0.01, may_choose=False, overhead=0.16)
        assert machine.lengths(16 + 50 + 1) == [16, 50, 1]  # 0.02 s per step of the first call

    def test_a_step_that_takes_longer_is_a_piece(self):
        machine = Machine(3.0, may_choose=False, first_piece=2)
        assert machine.lengths(5) == [2, 1, 1, 1]

    def test_no_steps_are_no_reason_to_fail(self):
        tuner = LoopTuner(Tuning(), may_choose=False)
        tuner.record_piece(0, 0.5)
        assert tuner.next(100).steps == 2

    def test_a_loop_that_other_machines_run_too_is_one_call(self):
        tuner = LoopTuner(Tuning(), may_choose=True, whole=True)
        for seconds in (0.0, 1e-6, 1e3):
            for steps in (1, 1000):
                call = tuner.next(steps)
                assert (call.steps, call.executor, call.single) == (steps, DEFAULT, False)
                tuner.record_call(call, steps, seconds)
                tuner.record_piece(steps, seconds)

    @staticmethod
    def singles(ops, seconds, replicas=1, first=1.0, calls=40):
        """How many calls of 50 steps each are of one step, until a loop takes over."""
        tuner = LoopTuner(
            Tuning(many_ops=100, small_step=0.01, first_calls=10),
            may_choose=False,
            ops=ops,
            replicas=replicas,
        )
        for made in range(calls):
            call = tuner.next(50)
            if not call.single:
                assert call.steps > 1
                return made
            assert call.steps == 1
            took = seconds if made else first
            tuner.record_call(call, call.steps, took)
            tuner.record_piece(call.steps, took)
        return calls

    def test_large_steps_are_calls_of_their_own_until_a_loop_is_worth_its_making(self):
        assert self.singles(ops=99, seconds=0.5) == 0
        assert self.singles(ops=100, seconds=0.5) == 1 + 10 / 0.5 + 1
        assert self.singles(ops=100, seconds=0.5, replicas=2) == 40
        assert self.singles(ops=100, seconds=0.5, first=100.0) == 40

    def test_small_steps_of_many_operations_are_looped_after_the_time_of_the_first_call(self):
        for replicas in (1, 2):
            assert self.singles(ops=100, seconds=0.004, first=0.0999, replicas=replicas) == 26
        assert self.singles(ops=100, seconds=0.004) == 40

    def test_numbers_are_the_caller_s(self):
        machine = Machine(0.01, may_choose=False, first_piece=4, piece=0.1)
        assert machine.lengths(30) == [4, 10, 10, 6]

    def test_while_executors_are_timed_calls_are_short(self):
        machine = Machine({DEFAULT: 1e-4, SINGLE_THREADED: 2e-4})
        lengths = machine.lengths(100_000)
        assert lengths[:4] == [16, 16, 500, 500]  # 0.05 s each, once a run was timed
        timed = 2 + 3 + 2 * 5 - 1  # two that compile, the default alone, turns of both
        assert max(lengths[:timed]) == 500
        assert lengths[timed : timed + 2] == [5_000, 10_000]  # 1 s, by the time of the call before


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
    def test_the_faster_is_kept(self, default, single, expected):
        machine = Machine({DEFAULT: default, SINGLE_THREADED: single})
        machine.loop(20_000)
        assert machine.executors(30_000)[-1] == expected
        tried = {call.executor for call in machine.calls}
        assert tried == ({DEFAULT} if default == 5e-3 else {DEFAULT, SINGLE_THREADED})

    def test_they_take_turns(self):
        machine = Machine({DEFAULT: 1e-4, SINGLE_THREADED: 1e-4}, turns=2)
        single = [e == SINGLE_THREADED for e in machine.executors(50_000)]
        # One that compiles and three of the default, one that compiles, and turns.
        assert single[:8] == [False] * 4 + [True, True, False, True]
        assert not any(single[8:])

    @pytest.mark.parametrize("single", [0.6e-4, 1.4e-4])
    @pytest.mark.parametrize(("start", "end"), [(0, 5), (4, 11), (8, 14)])
    def test_other_work_that_comes_and_goes_decides_nothing(self, single, start, end):
        """Runs `start` to `end` take four times as long."""
        choice = ExecutorChoice(Tuning(), may_choose=True)
        used = []
        for turn in range(20):
            used.append(choice.next(100))
            seconds = {DEFAULT: 1e-4, SINGLE_THREADED: single}[used[-1]]
            choice.record(used[-1], 100, 100 * seconds * (4 if start <= turn < end else 1))
        assert {DEFAULT, SINGLE_THREADED} <= set(used)
        assert choice.next(100) == (SINGLE_THREADED if single < 1e-4 else DEFAULT)

    def test_short_runs_take_no_turns(self):
        choice = ExecutorChoice(Tuning(fewest_steps=8, first_runs=3), may_choose=True)
        choice.record(DEFAULT, 8, 1.0)  # compiles
        for steps in (8, 7, 7, 7, 8):
            choice.record(DEFAULT, steps, 1e-3)
        assert choice.next(8) == DEFAULT  # two runs were long enough
        choice.record(DEFAULT, 8, 1e-3)
        assert [choice.next(steps) for steps in (7, 8)] == [DEFAULT, SINGLE_THREADED]

    def test_runs_that_nothing_took_turns_with_do_not_count(self):
        choice = ExecutorChoice(Tuning(turns=1, first_runs=3, fewest_steps=1), may_choose=True)
        for seconds in (1.0, 1e-4, 1e-4, 2e-4):
            choice.record(DEFAULT, 1, seconds)
        for seconds in (1.0, 1.5e-4):
            choice.record(SINGLE_THREADED, 1, seconds)
        assert choice.next(1) == SINGLE_THREADED

    def test_of_single_steps_the_median_counts(self):
        seconds = {DEFAULT: [1e-4] * 3, SINGLE_THREADED: [0.5e-4, 2e-4, 2e-4]}
        chosen = []
        for single in (False, True):
            tuning = Tuning(turns=3, turns_of_single_steps=3, first_runs=1, fewest_steps=1)
            choice = ExecutorChoice(tuning, may_choose=True, single=single)
            for executor in (DEFAULT, SINGLE_THREADED):
                choice.record(executor, 1, 1.0)
                for each in seconds[executor]:
                    choice.record(executor, 1, each)
            chosen.append(choice.next(1))
        assert chosen == [SINGLE_THREADED, DEFAULT]

    def test_nothing_is_tried_where_it_cannot_run(self):
        machine = Machine({DEFAULT: 1e-3, SINGLE_THREADED: 1e-6}, may_choose=False)
        assert set(machine.executors(20_000)) == {DEFAULT}

    def test_short_runs_say_nothing(self):
        machine = Machine({DEFAULT: 1e-4, SINGLE_THREADED: 1e-6}, single_runs=10**6)
        for _ in range(50):
            assert machine.executors(7) == [DEFAULT]
        assert SINGLE_THREADED in machine.executors(10_000)


class TestSingleSteps:
    def test_after_enough_of_them_they_have_no_loop(self):
        machine = Machine(1e-3, may_choose=False, single_runs=3)
        single = [machine.loop(1)[0].single for _ in range(8)]
        assert single == [False] * 4 + [True] * 4  # the first is not timed yet

    def test_a_longer_run_starts_anew(self):
        machine = Machine(1e-3, may_choose=False, single_runs=3)
        for _ in range(8):
            machine.loop(1)
        assert not machine.loop(2)[0].single
        assert [machine.loop(1)[0].single for _ in range(4)] == [False] * 3 + [True]

    def test_slow_steps_stay_in_a_loop(self):
        machine = Machine(6e-3, may_choose=False, single_runs=3)
        assert not any(machine.loop(1)[0].single for _ in range(20))

    def test_they_have_an_executor_of_their_own(self):
        machine = Machine(
            {DEFAULT: 2e-4, SINGLE_THREADED: 1e-4}, single_runs=3, turns_of_single_steps=4
        )
        machine.loop(10_000)  # a loop's choice is made, and theirs is not
        calls = [machine.loop(1)[0] for _ in range(60)]
        executors = [call.executor for call in calls if call.single]
        assert executors[:4] == [DEFAULT] * 4  # one that compiles, three alone
        assert executors.count(DEFAULT) == 4 + 3
        assert executors[-1] == SINGLE_THREADED
        assert [c.executor for c in calls if not c.single] == [SINGLE_THREADED] * 3


class TestHostCalls:
    def make(self, *batches, **numbers):
        """A tuner that was told of batches: (calls, seconds of them)."""
        tuner = HostCallTuner(Tuning(**numbers), 100, may_choose=True)
        for calls, seconds in batches:
            tuner.record(DEFAULT, calls, seconds + 1.0, seconds)
        return tuner

    def test_what_is_quick(self):
        trial, limit = Tuning().trial_calls, Tuning().trial_calls * Tuning().quick_call

        def quick(*batches):
            return self.make((1, 100.0), *batches).quick  # the first compiles

        assert self.make().quick is None
        assert quick() is None
        assert quick((trial - 1, 0.9 * limit)) is None
        assert quick((trial - 1, 0.9 * limit), (1, 0.0)) is True
        assert quick((3, 1.1 * limit)) is False
        assert quick((3, 1.1 * limit), (trial, 0.0)) is False  # for good
        assert quick((trial, 0.9 * limit), (1, limit)) is True

    def test_executors_are_timed_once_calls_stay_in_the_queue(self):
        tuner = self.make((1, 1.0))
        seconds = {DEFAULT: 2e-4, SINGLE_THREADED: 1e-4}
        assert tuner.quick is None
        assert {tuner.next(100) for _ in range(20)} == {DEFAULT}
        tuner.record(DEFAULT, 1, 1.0, 1.0)
        assert tuner.quick is False
        used = []
        for _ in range(30):
            used.append(tuner.next(100))
            tuner.record(used[-1], 100, 100 * seconds[used[-1]], 0.0)
        assert used[:4] == [DEFAULT] * 4
        assert used[-1] == SINGLE_THREADED

    def test_how_many_may_wait(self):
        tuner = self.make()
        assert [tuner.piece(steps) for steps in (7, 50, 51, 1000)] == [7, 50, 50, 50]
        assert tuner.fits(50, 50)
        assert not tuner.fits(51, 50)

    def test_the_capacity_of_a_queue(self):
        tuning = Tuning(queue_calls=10, queue_bytes=100)
        sizes = [0, 1, 10, 11, 20, 50, 51, 101]
        assert list(map(tuning.queue_capacity, sizes)) == [10, 10, 10, 9, 5, 2, None, None]


class TestStepsWithHostCalls:
    def test_calls_of_the_devices_are_short_while_host_calls_wait(self):
        machine = Machine(1e-3, queue=1000)
        assert machine.lengths(166) == [16, 50, 50, 50]

    def test_they_are_no_longer_than_half_of_the_queue(self):
        assert Machine(1e-3, queue=20).lengths(30) == [10, 10, 10]

    def test_no_executor_is_tried_before_steps_are_what_they_will_be(self):
        machine = Machine({DEFAULT: 1e-4, SINGLE_THREADED: 1e-5}, queue=1000)
        assert set(machine.executors(20_000)) == {DEFAULT}
        machine.queue.quick = False
        assert machine.executors(50_000)[-1] == SINGLE_THREADED

    @pytest.mark.parametrize(("in_calls", "in_steps"), [(True, True), (False, True), (True, False)])
    def test_calls_come_to_be_a_part_of_their_steps(self, in_calls, in_steps):
        """Then their functions count, too, for whether the other executor can run a step."""
        tuning = Tuning()
        tuner = LoopTuner(tuning, in_steps, HostCallTuner(tuning, 1000, in_calls))
        tuner.record_piece(10, 1e-3)
        assert tuner.next(10**6) == Call(500, DEFAULT, single=False, timed=False)
        tuner.take_calls_into_steps()
        call = tuner.next(10**6)
        assert call.timed
        assert call.steps == (16 if in_calls and in_steps else 10_000)  # 16: timed from the first


class TestRuns:
    def test_how_many_steps_a_run_may_make(self):
        tuner = RunTuner()
        assert tuner.steps_within(1.0) == 1
        tuner.record(1, 30.0)  # traced and compiled
        assert tuner.steps_within(1.0) == 2
        tuner.record(2, 0.02)
        assert tuner.steps_within(1.0) == 100
        tuner.record(100, 4.0)
        assert tuner.steps_within(1.0) == 25
        assert tuner.steps_within(0.01) == 0


class TestPredictions:
    def test_calls_grow_while_they_are_quick(self):
        tuner = PredictionTuner(Tuning(most_batches=5, quick_prediction=0.1))
        batches = []
        for seconds in (0.01, 0.2, 0.05, 0.05, 0.05):
            batches.append(tuner.batches)
            tuner.record(seconds)
        assert batches == [1, 2, 2, 4, 5]

    NUMBERS = {"first_runs": 2, "single_batches": 4, "slow_step": 2e-3}

    @staticmethod
    def told(tuner, calls):
        """Executor and whether there is a loop, before each call."""
        found = []
        for batches, seconds in calls:
            found.append((tuner.executor, tuner.loops))
            tuner.record(batches, seconds)
        return [*found, (tuner.executor, tuner.loops)]

    def test_quick_batches_go_to_one_thread_and_then_into_a_loop(self):
        # The first call of each kind traces.
        calls = [(1, 9.0), (1, 1e-3), (1, 1e-3), (1, 9.0), (1, 1e-3), (1, 1e-3), (8, 9.0)]
        tuner = CollectTuner(Tuning(**self.NUMBERS), may_choose=True)
        assert self.told(tuner, calls) == [
            *[(DEFAULT, False)] * 3,
            *[(SINGLE_THREADED, False)] * 3,
            *[(SINGLE_THREADED, True)] * 2,
        ]

    def test_a_loop_whose_batches_become_slow_goes_back_to_the_default(self):
        tuner = CollectTuner(Tuning(**self.NUMBERS), may_choose=True)
        tuner.executor, tuner.loops = SINGLE_THREADED, True
        calls = [(1, 9.0), (32, 0.06), (0, 1e-3), (32, 0.07)]  # one meets the end of the data alone
        expected = [*[(SINGLE_THREADED, True)] * 4, (DEFAULT, True)]
        assert self.told(tuner, calls) == expected

    def test_slow_batches_stay_on_the_default_without_a_loop(self):
        tuner = CollectTuner(Tuning(**self.NUMBERS), may_choose=True)
        assert set(self.told(tuner, [(1, 9.0), *[(1, 3e-3)] * 9])) == {(DEFAULT, False)}

    def test_steps_for_one_executor_stay_on_the_default(self):
        tuner = CollectTuner(Tuning(**self.NUMBERS), may_choose=False)
        assert self.told(tuner, [(1, 9.0), *[(1, 1e-3)] * 4])[-1] == (DEFAULT, True)
