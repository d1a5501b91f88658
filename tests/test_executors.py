"""Loops on the devices: the same steps, whatever executor their calls are timed on."""

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.loop.device_loop import DeviceLoop


@pytest.mark.parametrize("steps", [1, 7, 40, 1000])
def test_a_loop_gives_the_same_numbers_with_either(steps):
    found = {}
    for may_choose in (False, True):
        total = tf.Variable(0.0)

        def step(data, total=total):
            total.assign(total * 0.9 + data)
            return [total.read_value()]

        loop = DeviceLoop(step, tf.float32, stop_on_nan=True, may_choose=may_choose)
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
        may_choose=True,
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

    loop = DeviceLoop(step, tf.float32, stop_on_nan=True, may_choose=True)
    result = loop(iter(tf.data.Dataset.from_tensors(1.0).repeat()), 10_000)
    assert (result.steps, result.stopped_by_nan) == (bad, True)
    assert int(count) == bad
