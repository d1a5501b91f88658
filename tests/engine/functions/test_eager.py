"""Eager execution wherever the engine is called from."""

from __future__ import annotations

import threading

import pytest
import tensorflow as tf
from tensorflow.python import tf2

from tpu_estimator_compat.engine.functions import eager


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
