"""Questions about operations of a graph."""

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.graph import graph_ops


def branch(change):
    def build(step):
        return tf.cond(step < 3, lambda: change(step), lambda: tf.constant(0, tf.int64))

    return build


WRITERS = {
    "a read": (lambda step: step.read_value(), False),
    "a write": (lambda step: step.assign_add(1), True),
    "a branch that reads": (branch(lambda step: step + 1), False),
    "a branch that writes": (branch(lambda step: step.assign_add(1).read_value()), True),
    "a function that reads": (lambda step: tf.function(lambda: step + 1)(), False),
    "a function that writes": (lambda step: tf.function(lambda: step.assign_add(1))(), True),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_what_an_operation_changes(kind):
    build, writes = WRITERS[kind]
    with tf.Graph().as_default() as graph:
        step = tf.get_variable("step", [], tf.int64, use_resource=True)
        before = len(graph.get_operations())
        build(step)
        changed = [t for op in graph.get_operations()[before:] for t in graph_ops.written(op)]
    assert {t.op.name for t in changed} == ({"step"} if writes else set())
