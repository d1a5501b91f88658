"""Learning rates in a graph: whose tensor it is, by the operations that take one."""

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.capture import graph_building
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.step import learning_rate


@pytest.fixture(autouse=True)
def graph():
    with graph_building.capture_semantics(), tf.Graph().as_default() as made:
        yield made


def found(*optimizers):
    """The rates of a step in which each optimizer trains a variable of its own."""
    names = [f"v{i}" for i in range(len(optimizers))]
    variables = [tf.get_variable(name, [2], use_resource=True) for name in names]
    updates = [
        optimizer.minimize(tf.reduce_sum(v**2), var_list=[v])
        for optimizer, v in zip(optimizers, variables, strict=True)
    ]
    return learning_rate.find(updates, set(names))


OPTIMIZERS = [
    tf.train.AdagradOptimizer,
    tf.train.AdadeltaOptimizer,
    tf.train.FtrlOptimizer,
    tf.train.GradientDescentOptimizer,
    tf.train.ProximalAdagradOptimizer,
    tf.train.ProximalGradientDescentOptimizer,
    tf.train.RMSPropOptimizer,
    lambda rate: tf.train.RMSPropOptimizer(rate, centered=True),
]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_optimizers_of_tensorflow_have_one_rate(make):
    [rate] = found(make(0.25))
    assert tf.get_static_value(rate) == 0.25


def test_a_rate_of_the_input_is_none():
    with pytest.raises(ValueError, match=r"its rate rate:0 depends on the input"):
        found(tf.train.AdamOptimizer(tf.placeholder(tf.float32, [], name="rate")))


def test_reads_of_one_variable_are_one_rate_and_all_replaced(graph):
    variable = tf.Variable(0.5, use_resource=True, name="rate")
    first, second = tf.train.AdamOptimizer, tf.train.GradientDescentOptimizer
    rates = found(first(variable.read_value()), second(variable.read_value()))
    assert len(rates) == 2
    graph.finalize()
    handle = learning_rate.replace(rates)
    assert handle.name == "learning_rate_of_keras"
    assert not any(rate.consumers() for rate in rates)
    applied = [op for op in graph.get_operations() if op.type.startswith("ResourceApply")]
    assert len(applied) == 2
    for op in applied:
        behind = graph_ops.ancestors([op], ())
        assert handle in behind
        assert variable.handle.op not in behind
    assert graph.finalized
    order = graph_ops.in_creation_order(graph.get_operations())
    assert order[0] is handle


def test_a_branch_that_writes_a_variable_is_an_update(graph):
    variable = tf.get_variable("v", [], use_resource=True)
    written = tf.cond(tf.constant(True), lambda: variable.assign_add(1.0).op, tf.no_op)
    read = tf.cond(tf.constant(True), lambda: variable + 1.0, lambda: 0.0)
    [rate] = learning_rate.find(
        [tf.train.AdamOptimizer(0.1).minimize(variable * read, var_list=[variable])], {"v"}
    )
    assert tf.get_static_value(rate) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="updates the trainable variables, only If"):
        learning_rate.find([written.op], {"v"})
