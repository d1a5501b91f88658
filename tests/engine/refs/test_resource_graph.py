"""A graph that grows and that is fed, on resource variables."""

import pytest
import tensorflow.compat.v1 as tf
from support import judged

from tpu_estimator_compat.engine.refs import resource_graph


def test_a_graph_without_ref_variables_is_itself():
    with tf.Graph().as_default() as graph:
        one = tf.get_variable("one", [], use_resource=True) + 1.0
        converted = resource_graph.of(graph)
        assert converted.graph is graph
        assert converted.tensor(one) is one
        assert converted.fed(one) == [one]
        assert converted.operation(one.op) is one.op
        tf.constant(1.0)
        assert resource_graph.of(graph).graph is graph


def test_it_has_a_ref_variable_after_it_had_none():
    with tf.Graph().as_default() as graph:
        two = tf.constant(2.0, name="two")
        assert resource_graph.of(graph).graph is graph
        ref, start = judged.variable("v", 1.0)
        sum_ = tf.identity(ref) + two
        converted = judged.on_resources(graph)
    assert converted.graph is not graph
    with tf.Session(graph=converted.graph) as session:
        session.run(converted.operation(start))
        assert session.run([converted.tensor(sum_), converted.tensor(two)]) == [3.0, 2.0]


def test_what_a_graph_gets_later_takes_what_it_had():
    """Values, refs, results of writes, and waits, as hooks add them in `begin`."""
    with tf.Graph().as_default() as graph:
        ref, start = judged.variable("v", 1.0)
        read = tf.identity(ref)
        with tf.control_dependencies([read + 0.0]):
            written = tf.raw_ops.AssignAdd(ref=ref, value=2.0)
        first = judged.on_resources(graph)
        inner = first.graph
        with tf.control_dependencies([written.op]):
            seen = read * 1.0
            again = tf.raw_ops.AssignAdd(ref=written, value=10.0)
        with tf.control_dependencies([again.op]):
            last = read * 1.0
        converted = judged.on_resources(graph)
    assert converted is first
    assert converted.graph is inner
    with tf.Session(graph=graph) as judge, tf.Session(graph=inner) as session:
        judge.run(start)
        session.run(converted.operation(start))
        expected = judge.run(last)
        assert session.run(converted.tensor(last)) == expected == 13.0
        with_seen = session.run([converted.tensor(seen), converted.tensor(last)])
        assert with_seen[1] == 25.0


def test_a_ref_is_its_value_after_the_write_that_returned_it():
    with tf.Graph().as_default() as graph:
        ref, start = judged.variable("v", 1.0)
        written = tf.raw_ops.AssignAdd(ref=ref, value=2.0)
        converted = judged.on_resources(graph)
        value = converted.tensor(written)
    assert value is converted.tensor(written)
    assert value.dtype == tf.float32
    with tf.Session(graph=converted.graph) as session:
        session.run(converted.operation(start))
        assert session.run(value) == 3.0
        assert session.run(converted.tensor(ref)) == 3.0


def test_an_operation_is_on_no_device_and_with_no_other():
    """Colocation and devices are of the graph that the original ran."""
    with tf.Graph().as_default() as graph, tf.device("/job:worker/task:7"):
        ref, _ = judged.variable("v", 1.0)
        with graph.colocate_with(ref):
            read = tf.identity(ref)
        converted = judged.on_resources(graph)
    assert converted.operation(read.op).device == ""
    with pytest.raises(ValueError, match="_class"):
        converted.operation(read.op).get_attr("_class")
    assert read.op.get_attr("_class")
