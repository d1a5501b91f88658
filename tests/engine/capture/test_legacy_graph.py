"""The graph of legacy functions: the GraphDef of a finalized one is TensorFlow's, and made once."""

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.capture import legacy_graph
from tpu_estimator_compat.engine.capture.legacy_graph import LegacyGraph


def build(graph):
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        tf.cond(tf.reduce_sum(x) > 0, lambda: x * 1.5, lambda: x)
    return graph


def shapes(graph_def):
    return {n.name: str(n.attr["_output_shapes"]) for n in graph_def.node}


def test_the_graph_def_is_tensorflows_first_and_again():
    theirs, ours = build(tf.Graph()), build(LegacyGraph())
    for graph in (theirs, ours):
        graph.finalize()
    for add_shapes in (True, True, False):
        expected = theirs.as_graph_def(add_shapes=add_shapes)
        assert shapes(ours.as_graph_def(add_shapes=add_shapes)) == shapes(expected)


def test_shapes_are_worked_out_once(monkeypatch):
    graph = build(LegacyGraph())
    graph.finalize()
    graph.as_graph_def(add_shapes=True)
    monkeypatch.setattr(tf.Tensor, "get_shape", None)
    assert shapes(graph.as_graph_def(add_shapes=True))["x"].count("size") == 2


def test_a_change_of_what_it_gave_changes_nothing():
    graph = build(LegacyGraph())
    graph.finalize()
    for _ in range(2):
        given = graph.as_graph_def(add_shapes=True)
        assert given.node[0].name == "x"
        given.node[0].name = "mine"


def test_what_is_added_is_there():
    graph = build(LegacyGraph())
    with graph.as_default():
        graph.get_tensor_by_name("x:0").set_shape([2, 3])
        graph.finalize()
        assert "size: 2" in shapes(graph.as_graph_def(add_shapes=True))["x"]
        graph._unsafe_unfinalize()
        tf.constant(1, name="late")
        graph.finalize()
    assert "late" in shapes(graph.as_graph_def(add_shapes=True))


def test_a_large_one_is_not_kept(monkeypatch):
    monkeypatch.setattr(legacy_graph, "_KEPT", 10)
    graph = build(LegacyGraph())
    graph.finalize()
    first, second = (graph.as_graph_def(add_shapes=True) for _ in range(2))
    assert first == second
    assert graph._shaped is None
