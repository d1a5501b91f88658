import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.capture import graph_building

from .steps import Steps

NAN = float("nan")


def test_n_steps(strategy):
    steps = Steps(strategy, 1)
    result = steps.runner.run(steps.iterator(1, 2, 3, 4), 3)
    assert (result.steps, float(result.loss), result.loss_sum) == (3, 3, 6)
    assert (int(result.counter), int(result.counter_before)) == (3, 2)
    assert (result.exhausted, result.stopped_by_nan) == (False, False)
    assert (steps.read(steps.total), steps.read(steps.seen)) == (6, 12)


def test_the_loss_is_the_mean_over_replicas(strategy):
    steps = Steps(strategy, 2)
    result = steps.runner.run(steps.iterator(1, 3, 5, 9), 2)
    assert (result.steps, float(result.loss), result.loss_sum) == (2, 7, 9)
    assert (steps.read(steps.total), steps.read(steps.seen)) == (6, 36)  # the first one's, and all


def test_the_data_ends(strategy):
    steps = Steps(strategy, 1)
    iterator = steps.iterator(1, 2)
    result = steps.runner.run(iterator, 5)
    assert (result.steps, result.exhausted) == (2, True)
    assert steps.runner.run(iterator, 5).steps == 0
    assert steps.read(steps.step) == 2


@pytest.mark.parametrize(("stop", "made"), [(True, 2), (False, 4)])
def test_nan(strategy, stop, made):
    steps = Steps(strategy, 1, trains=stop)
    result = steps.runner.run(steps.iterator(1, NAN, 3, 4), 4)
    assert (result.steps, result.stopped_by_nan) == (made, stop)
    assert steps.read(steps.step) == made


def test_a_step_with_other_fetches(strategy):
    steps = Steps(strategy, 1)
    iterator = steps.iterator(1, 2, 3, 4)
    [doubled] = steps.runner.run_once(iterator, [steps.doubled], [])
    np.testing.assert_array_equal(doubled, [2, 2])
    assert steps.read(steps.step) == 0  # no target was asked for
    for fed, expected in (steps.scale, 2 * 10), (steps.mean, 10):
        feeds = [(fed, np.float32(10))]
        [loss] = steps.runner.run_once(iterator, [steps.loss], steps.plan.targets, feeds)
        assert loss == expected
    assert (steps.read(steps.step), steps.read(steps.seen)) == (2, 4 + 6)
    steps.runner.run_once(iterator, [steps.loss], [])
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        steps.runner.run_once(iterator, [steps.loss], [])


def test_elements_are_collected(strategy):
    steps = Steps(strategy, 1)
    assert steps.runner.can_collect([steps.doubled])
    assert not steps.runner.can_collect([steps.loss])  # it has no batch dimension
    assert not Steps(strategy, 2).runner.can_collect([steps.doubled])
    iterator = steps.iterator(1, 2, 3)
    found = [steps.runner.collect(iterator, [steps.doubled], 2) for _ in range(2)]
    assert [[list(values) for [values] in each] for each in found] == [[[2, 2], [4, 4]], [[6, 6]]]


def test_host_calls_of_some_steps(strategy):
    """In every so manieth step of a loop, counted from its begin."""
    steps = Steps(strategy, 1, host_calls_every=2)
    iterator = steps.iterator(1, 10, 100, 1000, 10000)
    steps.runner.begin_loop()
    steps.runner.run(iterator, 3)
    assert steps.read(steps.seen) == 2 * 101
    steps.runner.begin_loop()
    steps.runner.run(iterator, 2)
    assert steps.read(steps.seen) == 2 * 1101


def test_events_that_wait_are_written_at_the_end(strategy, tmp_path):
    """Though a writer would keep them for two minutes."""
    steps = Steps(strategy, 1)
    summary = tf.compat.v2.summary
    with graph_building.capture_semantics(), steps.graph.as_default():
        writer = summary.create_file_writer(str(tmp_path), max_queue=100)
        with writer.as_default(), summary.record_if(True):
            written = summary.scalar("x", 1.0, step=3)
        opened = writer.init()
    steps.session.run(opened)
    steps.session.run(written)
    steps.runner.close()
    [path] = tmp_path.iterdir()
    assert [e.step for e in tf.train.summary_iterator(str(path)) if e.summary.value] == [3]
