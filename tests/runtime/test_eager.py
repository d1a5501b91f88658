"""Eager execution wherever the engine is called from."""

from __future__ import annotations

import threading
import weakref

import pytest
import tensorflow as tf
from tensorflow.python import tf2

from tpu_estimator_compat.runtime import eager, functions


def test_threads_may_leave_a_graph_that_they_share_in_any_order(monkeypatch):
    """A checkpoint is written by another thread, which has the same default graph."""
    with monkeypatch.context() as patch:
        patch.setattr(tf2, "enabled", lambda: False)  # as after disable_v2_behavior()
        graph = tf.Graph()
    entered, left = threading.Event(), threading.Event()

    def other():
        with graph.as_default(), eager.eager_mode():
            entered.set()
            assert left.wait(30)

    thread = threading.Thread(target=other)
    with graph.as_default():
        with eager.eager_mode():
            thread.start()
            assert entered.wait(30)
        left.set()
    thread.join()


@pytest.mark.parametrize("inside", ["graph", "function", "nothing"])
def test_tensors_have_values(inside):
    if inside == "graph":
        with tf.Graph().as_default(), eager.eager_mode():
            assert tf.constant(2.0).numpy() == 2.0
    elif inside == "function":
        seen = []

        @tf.function
        def function():
            with eager.eager_mode():
                seen.append(tf.constant(2.0).numpy())
            return tf.constant(0)

        function()
        assert seen == [2.0]
    else:
        with eager.eager_mode():
            assert tf.constant(2.0).numpy() == 2.0


def test_a_function_of_an_iterator_is_traced_for_each_type_of_it():
    traced = []

    def total(iterator, factor):
        x = next(iterator)
        traced.append(x.shape.as_list())
        size = tf.cast(tf.size(x) if x.shape[0] is None else x.shape[0], tf.int64)
        return tf.reduce_sum(x), size * factor

    function = functions.IteratorFunction(total)
    for size in (4, 4, 2, 7, 3):
        iterator = iter(tf.data.Dataset.from_tensors(tf.ones([size])).repeat(2))
        for factor in (1, 10):
            result = [float(value) for value in function(iterator, tf.constant(factor, tf.int64))]
            assert result == [size, size * factor]
    # Then for any length, as by a tf.function that is to be traced seldom.
    assert traced == [[4], [None]]


def test_a_function_does_not_keep_its_iterator():
    function = functions.IteratorFunction(lambda iterator: next(iterator))
    iterator = iter(tf.data.Dataset.range(3))
    assert list(map(int, function(iterator))) == [0]
    gone = weakref.ref(iterator)
    del iterator
    assert gone() is None


class PlainIterator:
    """An object of Python to TensorFlow, as the iterators of TF1's strategies are."""

    def __init__(self, dataset):
        self._iterator = iter(dataset)

    def __next__(self):
        return next(self._iterator)


def test_iterators_whose_handles_are_captured():
    function = functions.IteratorFunction(lambda iterator, n: next(iterator) * n)
    for start in (1, 100):
        iterator = PlainIterator(tf.data.Dataset.range(start, start + 10))
        assert not functions.handles_of(iterator)
        factors = tf.constant([1, 10], tf.int64)
        results = [[int(value) for value in function(iterator, n)] for n in factors]
        assert results == [[start], [10 * (start + 1)]]
