"""Many predictions in one call: the same values on whichever executor, and the end of the data."""

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.loop.collect_loop import CollectLoop
from tpu_estimator_compat.runtime.tuning import DEFAULT, SINGLE_THREADED, CollectTuner, Tuning

SIZES = (3, 3, 2, 5)


def batches(sizes=SIZES):
    """Batches of so many examples [size, 2], all different."""
    ends = np.cumsum(sizes)
    values = np.random.RandomState(0).normal(size=(sum(sizes), 2)).astype(np.float32)
    parts = np.split(values, ends[:-1]) if len(sizes) else []
    signature = tf.TensorSpec([None, 2], tf.float32)
    return tf.data.Dataset.from_generator(lambda: iter(parts), output_signature=signature), parts


def step(batch):
    return [batch * 2.0, tf.argmax(batch, axis=-1)]


def loop(executor):
    tuner = CollectTuner(Tuning(slow_step=1e9), executor == SINGLE_THREADED, 1)
    return CollectLoop(step, [(tf.float32, 2), (tf.int64, 1)], tuner)


@pytest.mark.parametrize("executor", [DEFAULT, SINGLE_THREADED])
@pytest.mark.parametrize("most", [1, 2, 4, 9])
def test_outputs_of_each_element(executor, most):
    dataset, parts = batches()
    iterator, collect, found = iter(dataset), loop(executor), []
    while True:
        values = collect(iterator, most)
        found += values
        if len(values) < most:
            break
    assert len(found) == len(parts)
    for (doubled, largest), part in zip(found, parts, strict=True):
        np.testing.assert_array_equal(doubled, part * 2)
        np.testing.assert_array_equal(largest, part.argmax(-1))


@pytest.mark.parametrize("executor", [DEFAULT, SINGLE_THREADED])
def test_no_data(executor):
    assert loop(executor)(iter(batches(())[0]), 4) == []


def test_slow_steps_change_their_executor_and_nothing_else():
    dataset, parts = batches()
    times = iter(range(100))  # a second for each call
    tuner = CollectTuner(Tuning(clock=lambda: next(times)), True, 1)
    collect, iterator = CollectLoop(step, [(tf.float32, 2), (tf.int64, 1)], tuner), iter(dataset)
    found, executors = [], []
    for _ in parts:
        executors.append(tuner.executor)
        found += collect(iterator, 1)
    assert executors == [SINGLE_THREADED, SINGLE_THREADED, DEFAULT, DEFAULT]
    for (doubled, _), part in zip(found, parts, strict=True):
        np.testing.assert_array_equal(doubled, part * 2)
