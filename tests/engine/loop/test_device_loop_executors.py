"""Loops on the devices: the same steps, whatever executor their calls are timed on."""

import time

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.loop.device_loop import DeviceLoop

from .steps import PlainStep

SINGLE = {"few_steps": 1, "piece": 1e-9, "small_step": 60.0, "tracing": 0.0}  # all but the first


@pytest.mark.parametrize("steps", [1, 7, 40, 1000])
def test_a_loop_gives_the_same_numbers_with_either(steps):
    found = {}
    for may_choose in (False, True):
        total = tf.Variable(0.0)

        def step(data, total=total):
            total.assign(total * 0.9 + data)
            return [total.read_value()]

        loop = DeviceLoop(PlainStep(step, may_run_on_one_thread=may_choose))
        iterator = iter(tf.data.Dataset.from_tensors(1.0).repeat())
        results = [loop(iterator, steps) for _ in range(3)]
        assert [r.steps for r in results] == [steps] * 3
        found[may_choose] = [float(r.loss) for r in results] + [r.loss_sum for r in results]
    np.testing.assert_array_equal(found[True], found[False])


@pytest.mark.parametrize("end", [1, 30, 500])
def test_the_end_of_the_data_is_exact_while_both_are_tried(end):
    total = tf.Variable(0.0)
    loop = DeviceLoop(PlainStep(lambda data: [total.assign_add(data)], may_run_on_one_thread=True))
    iterator = iter(tf.data.Dataset.from_tensors(1.0).repeat(end))
    result = loop(iterator, 10_000)
    assert (result.steps, result.exhausted, float(total)) == (end, True, float(end))
    assert loop(iterator, 10).steps == 0


def test_a_step_counts_only_with_an_element():
    """The loss is there long before the data turns out to have ended."""

    def elements():
        yield from [1.0, 2.0]
        time.sleep(0.2)

    loop = DeviceLoop(PlainStep(lambda data: [tf.constant(3.0)]))
    spec = tf.TensorSpec([], tf.float32)
    result = loop(iter(tf.data.Dataset.from_generator(elements, output_signature=spec)), 10)
    assert (result.steps, result.exhausted, result.loss_sum) == (2, True, 6.0)


@pytest.mark.parametrize("bad", [1, 16, 17, 400])
def test_a_nan_stops_at_its_step_while_both_are_tried(bad):
    count = tf.Variable(0)

    def step(data):
        count.assign_add(1)
        return [tf.where(count >= bad, float("nan"), data)]

    loop = DeviceLoop(PlainStep(step, may_run_on_one_thread=True))
    result = loop(iter(tf.data.Dataset.from_tensors(1.0).repeat()), 10_000)
    assert (result.steps, result.stopped_by_nan) == (bad, True)
    assert int(count) == bad


def loop_of(losses, *, trains=True):
    """A loop whose steps have these losses, and its data."""
    loop = DeviceLoop(PlainStep(lambda data: [data], trains=trains))
    return loop, iter(tf.data.Dataset.from_tensor_slices(tf.constant(losses, tf.float32)))


@pytest.mark.parametrize("numbers", [{}, SINGLE])
@pytest.mark.parametrize(
    ("losses", "trains", "steps", "stopped"),
    [
        ([1.0, 2.0, np.nan, 4.0], True, 3, True),
        ([1.0, 2.0, 3.0, np.nan], True, 4, True),
        ([1.0, 2.0, np.nan, 4.0], False, 4, False),
        ([1.0, np.inf, -np.inf, 4.0], True, 4, False),
    ],
)
def test_a_nan_ends_a_loop_and_infinity_does_not(losses, trains, steps, stopped, numbers, tuned):
    tuned(**numbers)
    loop, iterator = loop_of(losses, trains=trains)
    result = loop(iterator, 4)
    assert (result.steps, result.stopped_by_nan) == (steps, stopped)
    np.testing.assert_array_equal(result.loss, losses[steps - 1])


@pytest.mark.parametrize("numbers", [{}, SINGLE])
def test_the_end_of_the_data_is_no_nan_and_the_last_loss_stays(numbers, tuned):
    tuned(**numbers)
    loop, iterator = loop_of([1.0, 2.0, 3.0])
    result = loop(iterator, 10)
    assert (result.steps, result.exhausted, result.stopped_by_nan) == (3, True, False)
    assert (float(result.loss), result.loss_sum) == (3.0, 6.0)
    assert not loop(iterator, 10).stopped_by_nan


def test_signals_are_looked_for_as_often_as_tuning_says(tuned):
    now, pieces = 0.0, []

    def takes_time(data):
        nonlocal now
        now += 0.125
        return data

    def interrupted():
        pieces.append(int(now / 0.125))
        return len(pieces) == 4

    tuned(few_steps=4, clock=lambda: now)
    step = PlainStep(lambda data: [tf.numpy_function(takes_time, [data], tf.float32)])
    loop = DeviceLoop(step, interrupted=interrupted)
    iterator = iter(tf.data.Dataset.from_tensors(1.0).repeat())
    assert loop(iterator, 1000).steps == 28
    assert list(np.diff([0, *pieces])) == [4, 8, 8, 8]
