"""Queues of TF1 in an input_fn."""

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.inputs import call_input_fn
from tpu_estimator_compat.inputs.calling import (
    reruns_graph,
    runs_python,
    warn_if_endless,
)


def queued(strings=("1", "2", "3")):
    """Pairs of a dict and a sparse matrix, in batches of two."""
    text = tf.train.input_producer(tf.constant(strings), num_epochs=1, shuffle=False).dequeue()
    number = tf.string_to_number(text)
    numbers, texts = tf.train.batch([number, text], 2, allow_smaller_final_batch=True)
    return {"number": numbers, "text": texts}, tf.sparse.from_dense(numbers)


def test_queues_are_emptied_and_filled_anew():
    dataset = call_input_fn(queued, seed=None)
    for _ in range(2):
        found = list(dataset)
        assert [f["number"].numpy().tolist() for f, _ in found] == [[1.0, 2.0], [3.0]]
        assert [f["text"].numpy().tolist() for f, _ in found] == [[b"1", b"2"], [b"3"]]
        assert [sparse.values.numpy().tolist() for _, sparse in found] == [[1.0, 2.0], [3.0]]
    assert runs_python(dataset)
    assert reruns_graph(dataset)


def test_what_a_queue_runner_raises_is_told():
    dataset = call_input_fn(lambda: queued(["1", "x"]), seed=None)
    # TensorFlow knows no better of what Python raised.
    with pytest.raises(tf.errors.UnknownError, match="could not correctly convert string: x"):
        list(dataset.as_numpy_iterator())


class RunnerOfNothing:
    """Tells the original that the data end."""

    def create_threads(self, sess, coord=None, daemon=False, start=False):
        return []


def test_runners_without_a_queue_are_no_obstacle(caplog):
    def call():
        tf.add_to_collection(tf.GraphKeys.QUEUE_RUNNERS, RunnerOfNothing())
        return tf.constant(3.0)

    dataset = call_input_fn(call, seed=None)
    assert float(next(iter(dataset))) == 3
    warn_if_endless(dataset)
    assert not caplog.records
    warn_if_endless(call_input_fn(lambda: tf.constant(3.0), seed=None))
    assert "predict yields forever" in caplog.text
