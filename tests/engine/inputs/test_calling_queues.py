"""Queues of TF1 in an input_fn."""

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator as estimators
from tpu_estimator_compat.engine.inputs.calling import warn_if_endless

from .calls import called


def queued(strings=("1", "2", "3")):
    """Pairs of a dict and a sparse matrix, in batches of two."""
    text = tf.train.input_producer(tf.constant(strings), num_epochs=1, shuffle=False).dequeue()
    number = tf.string_to_number(text)
    numbers, texts = tf.train.batch([number, text], 2, allow_smaller_final_batch=True)
    return {"number": numbers, "text": texts}, tf.sparse.from_dense(numbers)


def model_fn(features, labels, mode):
    """Returns what it is given; counts steps."""
    predictions = {**features, "sparse": tf.sparse.to_dense(labels)} if labels else features
    step = tf.assign_add(tf.train.get_global_step(), 1)
    metrics = {"sum": tf.metrics.mean(features["number"])}
    loss = tf.reduce_sum(features["number"])
    return estimators.EstimatorSpec(mode, predictions, loss, step, metrics)


def test_queues_are_emptied_and_filled_anew(tmp_path):
    estimator = estimators.Estimator(model_fn, str(tmp_path))
    for steps in (2, 4):
        estimator.train(queued)
        assert estimator.get_variable_value("global_step") == steps
    results = estimator.evaluate(queued)
    assert (results["loss"], results["sum"]) == (3.0, 2.0)
    found = list(estimator.predict(queued, yield_single_examples=False))
    assert [f["number"].tolist() for f in found] == [[1.0, 2.0], [3.0]]
    assert [f["text"].tolist() for f in found] == [[b"1", b"2"], [b"3"]]


def test_what_a_queue_runner_raises_is_told(tmp_path):
    estimator = estimators.Estimator(model_fn, str(tmp_path))
    with pytest.raises(tf.errors.InvalidArgumentError, match="could not correctly convert string"):
        estimator.train(lambda: queued(["1", "x"]))


class RunnerOfNothing:
    """Tells the original that the data end."""

    def create_threads(self, sess, coord=None, daemon=False, start=False):
        return []


def test_runners_without_a_queue_are_no_obstacle(caplog):
    def call():
        tf.add_to_collection(tf.GraphKeys.QUEUE_RUNNERS, RunnerOfNothing())
        return tf.constant(3.0)

    found = called(call)
    assert float(next(iter(found.dataset()))) == 3
    warn_if_endless(found)
    assert not caplog.records
    warn_if_endless(called(lambda: tf.constant(3.0)))
    assert "predict yields forever" in caplog.text
