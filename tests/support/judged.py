"""Programs with ref variables, run by a session of TensorFlow itself, and as they are converted."""

import contextlib

import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.capture import graph_building
from tpu_estimator_compat.engine.capture.capture import LegacyGraph
from tpu_estimator_compat.engine.refs import resource_graph


def variable(name, initial):
    """A ref variable, and what a session has to run first for it."""
    initial = tf.constant(initial)
    made = tf.raw_ops.VariableV2(shape=initial.shape, dtype=initial.dtype, name=name)
    return made, tf.raw_ops.Assign(ref=made, value=initial).op


def in_sessions(build, steps=2, converts=True):
    """What `build`'s tensors are in some steps as TensorFlow 1 built them, and just so as captured.

    Args:
      build: returns the operations to run first, and the tensors to fetch.
      converts: whether the captured graph is converted to one on resource variables.
    """
    with old_behavior(), tf.Graph().as_default() as graph:
        starts, tensors = build()
    with tf.Session(graph=graph) as session:
        session.run(starts)
        judge = [session.run(tensors) for _ in range(steps)]
    graph, (starts, tensors) = captured(build)
    if converts:
        converted = on_resources(graph)
        starts = [converted.operation(start) for start in starts]
        tensors = [converted.tensor(tensor) for tensor in tensors]
        graph = converted.graph
        assert not any(op.type == "VariableV2" for op in graph.get_operations())
    with tf.Session(graph=graph) as session:
        session.run(starts)
        for step in judge:
            for expected, found in zip(step, session.run(tensors), strict=True):
                np.testing.assert_array_equal(found, expected)
    return judge


@contextlib.contextmanager
def old_behavior():
    """Within, variables are refs, and the operations of branches are of the graph around them."""
    tf.disable_control_flow_v2()
    tf.disable_resource_variables()
    try:
        yield
    finally:
        tf.enable_control_flow_v2()
        tf.enable_resource_variables()


def captured(build):
    """The graph of a script without TensorFlow 2's behaviour, and what `build` returns in it."""
    graph = LegacyGraph()
    with old_behavior(), graph_building.capture_semantics(), graph.as_default():
        return graph, build()


def on_resources(graph):
    converted = resource_graph.of(graph)
    for op in converted.graph.get_operations():
        if op.type == "VarHandleOp":  # a step gets a handle for it, a session makes one of its name
            op._set_attr("shared_name", tf.AttrValue(s=op.name.encode()))
    return converted
