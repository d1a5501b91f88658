"""Many predictions: the same values on each executor, in a loop or not; the end of the data."""

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.functions.tuner import Call, Tuner
from tpu_estimator_compat.engine.functions.tuning import DEFAULT, SINGLE_THREADED
from tpu_estimator_compat.engine.loop.collect_loop import CollectLoop

from .steps import PlainStep

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


@pytest.fixture
def calls(monkeypatch):
    """The calls that tuners decide."""
    found, decide = [], Tuner.next

    def next_call(self, steps):
        found.append(decide(self, steps))
        return found[-1]

    monkeypatch.setattr(Tuner, "next", next_call)
    return found


@pytest.fixture
def decided(monkeypatch):
    """`decided(executor, looped)`: every call is like that."""

    def of(executor, looped):
        def next_call(self, steps):
            return Call(steps if looped else 1, executor, looped)

        monkeypatch.setattr(Tuner, "next", next_call)

    return of


def collect_loop(**fields):
    return CollectLoop(PlainStep(step, **fields), [(tf.float32, 2), (tf.int64, 1)])


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
def test_outputs_of_each_element(executor, loops, most, decided):
    decided(executor, loops)
    dataset, parts = batches()
    check(collected(collect_loop(), iter(dataset), most), parts)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("executor", [DEFAULT, SINGLE_THREADED])
def test_no_data(executor, loops, decided):
    decided(executor, loops)
    assert collect_loop()(iter(batches(())[0]), 4) == []


@pytest.mark.parametrize("most", [1, 3, 40])
def test_a_change_of_executor_or_a_loop_changes_nothing_else(most, calls, tuned):
    """By its clock, which counts how often it is read, a loop pays after seven calls."""
    dataset, parts = batches(SIZES * 6)
    times = iter(range(1000))
    tuned(clock=lambda: next(times), piece=1e9, small_step=1e9, tracing=7.0, turns=1, few_steps=1)
    collect = collect_loop(may_run_on_one_thread=True)
    check(collected(collect, iter(dataset), most), parts)
    assert {call.executor for call in calls} == {DEFAULT, SINGLE_THREADED}
    assert any(call.looped for call in calls) == (most > 1)


def test_large_batches_stay_where_they_are(calls, tuned):
    dataset, parts = batches()
    times = iter(range(100))  # a second for each call
    tuned(clock=lambda: next(times), few_steps=1, turns=1, tracing=0.0)
    collect = collect_loop(may_run_on_one_thread=True)
    check(collected(collect, iter(dataset), 40), parts)
    assert set(calls) == {Call(1, DEFAULT, looped=False)}


@pytest.mark.parametrize("loops", [False, True])
def test_an_error_of_a_step_is_raised(loops, decided):
    """An error that is not the end of the data does not look like the end."""

    def failing(batch):
        return [tf.debugging.check_numerics(batch / 0.0, "no number")]

    decided(DEFAULT, loops)
    collect = CollectLoop(PlainStep(failing), [(tf.float32, 2)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="no number"):
        collect(iter(batches()[0]), 4)
