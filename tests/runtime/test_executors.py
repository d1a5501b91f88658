"""The choice of TensorFlow's executor: by timing, only where it may be made, numbers unchanged."""

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.loop.device_loop import DeviceLoop
from tpu_estimator_compat.runtime.executors import DEFAULT, SINGLE_THREADED, ExecutorChoice


def run(choice, seconds, times=20, steps=100):
    """Runs of `steps` steps that take `seconds[executor]` each; what was used last."""
    for _ in range(times):
        executor = choice.next(choice.piece(steps))
        choice.record(executor, choice.piece(steps), seconds[executor] * choice.piece(steps))
    return choice.next(steps)


@pytest.mark.parametrize(
    ("default", "single", "expected"),
    [
        (2e-4, 1e-4, SINGLE_THREADED),
        (1e-4, 2e-4, DEFAULT),
        (1e-4, 0.95e-4, DEFAULT),  # too close to tell
        (5e-3, 1e-4, DEFAULT),  # busy steps: not worth a trial
    ],
)
def test_the_faster_is_kept(default, single, expected):
    choice = ExecutorChoice(may_choose=True)
    assert run(choice, {DEFAULT: default, SINGLE_THREADED: single}) == expected
    assert choice.piece(10**6) == 10**6


@pytest.mark.parametrize("single", [0.6e-4, 1.4e-4])
@pytest.mark.parametrize(("start", "end"), [(0, 5), (4, 11), (8, 14)])
def test_other_work_that_comes_and_goes_decides_nothing(single, start, end):
    """Runs `start` to `end` take four times as long."""
    choice = ExecutorChoice(may_choose=True)
    used = []
    for turn in range(20):
        used.append(choice.next(100))
        seconds = {DEFAULT: 1e-4, SINGLE_THREADED: single}[used[-1]]
        choice.record(used[-1], 100, 100 * seconds * (4 if start <= turn < end else 1))
    assert {DEFAULT, SINGLE_THREADED} <= set(used)
    assert choice.next(100) == (SINGLE_THREADED if single < 1e-4 else DEFAULT)


def test_nothing_is_tried_where_it_cannot_run_or_runs_are_short():
    never = ExecutorChoice(may_choose=False)
    assert run(never, {DEFAULT: 1e-3, SINGLE_THREADED: 1e-6}) == DEFAULT
    short = ExecutorChoice(may_choose=True)
    for _ in range(50):
        assert short.next(short.piece(1)) == DEFAULT
        short.record(DEFAULT, 1, 1e-4)


@pytest.mark.parametrize("steps", [1, 7, 40, 1000])
def test_a_loop_gives_the_same_numbers_with_either(steps):
    found = {}
    for may_choose in (False, True):
        total = tf.Variable(0.0)

        def step(data, total=total):
            total.assign(total * 0.9 + data)
            return [total.read_value()]

        loop = DeviceLoop(step, tf.float32, stop_on_nan=True, executors=ExecutorChoice(may_choose))
        iterator = iter(tf.data.Dataset.from_tensors(1.0).repeat())
        results = [loop(iterator, steps) for _ in range(3)]
        assert [r.steps for r in results] == [steps] * 3
        found[may_choose] = [float(r.loss) for r in results] + [r.loss_sum for r in results]
    np.testing.assert_array_equal(found[True], found[False])


@pytest.mark.parametrize("end", [1, 30, 500])
def test_the_end_of_the_data_is_exact_while_both_are_tried(end):
    total = tf.Variable(0.0)
    loop = DeviceLoop(
        lambda data: [total.assign_add(data)],
        tf.float32,
        stop_on_nan=True,
        executors=ExecutorChoice(may_choose=True),
    )
    iterator = iter(tf.data.Dataset.from_tensors(1.0).repeat(end))
    result = loop(iterator, 10_000)
    assert (result.steps, result.exhausted, float(total)) == (end, True, float(end))
    assert loop(iterator, 10).steps == 0


@pytest.mark.parametrize("bad", [1, 16, 17, 400])
def test_a_nan_stops_at_its_step_while_both_are_tried(bad):
    count = tf.Variable(0)

    def step(data):
        count.assign_add(1)
        return [tf.where(count >= bad, float("nan"), data)]

    loop = DeviceLoop(step, tf.float32, stop_on_nan=True, executors=ExecutorChoice(may_choose=True))
    result = loop(iter(tf.data.Dataset.from_tensors(1.0).repeat()), 10_000)
    assert result.steps == bad
    assert int(count) == bad
