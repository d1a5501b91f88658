"""Many predictions: the same values on each executor, in a loop or not; the end of the data."""

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.loop.collect_loop import CollectLoop
from tpu_estimator_compat.engine.runtime.tuners import CollectTuner
from tpu_estimator_compat.engine.runtime.tuning import DEFAULT, SINGLE_THREADED, Tuning

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


def tuner_of(executor, loops):
    tuner = CollectTuner(Tuning(slow_step=1e9), may_choose=False)
    tuner.executor, tuner.loops = executor, loops
    return tuner


def collect_loop(tuner):
    return CollectLoop(step, [(tf.float32, 2), (tf.int64, 1)], tuner)


def collected(collect, iterator, most):
    found = []
    while True:
        values = collect(iterator, most)
        found += values
        if len(values) < most:
            return found


def check(found, parts):
    assert len(found) == len(parts)
    for (doubled, largest), part in zip(found, parts, strict=True):
        np.testing.assert_array_equal(doubled, part * 2)
        np.testing.assert_array_equal(largest, part.argmax(-1))


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("executor", [DEFAULT, SINGLE_THREADED])
@pytest.mark.parametrize("most", [1, 2, 4, 9])
def test_outputs_of_each_element(executor, loops, most):
    dataset, parts = batches()
    collect = collect_loop(tuner_of(executor, loops))
    check(collected(collect, iter(dataset), most), parts)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("executor", [DEFAULT, SINGLE_THREADED])
def test_no_data(executor, loops):
    assert collect_loop(tuner_of(executor, loops))(iter(batches(())[0]), 4) == []


@pytest.mark.parametrize("most", [1, 3, 40])
def test_a_change_of_executor_or_a_loop_changes_nothing_else(most):
    """Small steps go to one thread after a few, and into a loop after some more."""
    dataset, parts = batches(SIZES * 5)
    tuning = Tuning(slow_step=1e9, first_runs=2, single_batches=7)
    tuner = CollectTuner(tuning, may_choose=True)
    check(collected(collect_loop(tuner), iter(dataset), most), parts)
    assert (tuner.executor, tuner.loops) == (SINGLE_THREADED, True)


def test_slow_steps_stay_where_they_are():
    dataset, parts = batches()
    times = iter(range(100))  # a second for each call
    tuning = Tuning(clock=lambda: next(times), first_runs=1, single_batches=1)
    tuner = CollectTuner(tuning, may_choose=True)
    check(collected(collect_loop(tuner), iter(dataset), 1), parts)
    assert (tuner.executor, tuner.loops) == (DEFAULT, False)


@pytest.mark.parametrize("loops", [False, True])
def test_an_error_of_a_step_is_raised(loops):
    """An error that is not the end of the data does not look like the end."""

    def failing(batch):
        return [tf.debugging.check_numerics(batch / 0.0, "no number")]

    collect = CollectLoop(failing, [(tf.float32, 2)], tuner_of(DEFAULT, loops))
    with pytest.raises(tf.errors.InvalidArgumentError, match="no number"):
        collect(iter(batches()[0]), 4)
