"""Where the operations of a step belong: to the replicas, to the host, or to no step at all."""

import dataclasses

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.program.host_placeholders import HostPlaceholders
from tpu_estimator_compat.program.step_plan import StepPlan


@pytest.fixture
def ops(graph):
    """Tensors by where they belong, and the host's placeholders."""
    x = tf.placeholder(tf.float32, [4], name="x")
    variable = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    host = HostPlaceholders(graph, 2, same_on_all_replicas=False)
    over_replicas = host.over_replicas(x * variable)
    with tf.control_dependencies([x]):
        after_input = tf.constant(1.0)
    tensors = {
        "x": x,
        "from_input": tf.reduce_sum(x) * variable,
        "after_input": after_input,
        "on_host": tf.reduce_mean(over_replicas),
        "on_host_and_input": tf.reduce_mean(over_replicas) + tf.reduce_sum(x),
        "of_variable": variable + 1,
        "named": tf.constant(2.0, name="named"),
    }
    return tensors, host


def plan_of(graph, ops, **fields):
    tensors, host = ops
    return StepPlan(
        graph,
        tf.TensorSpec([4]),
        [tensors["x"]],
        loss=tensors["from_input"],
        replica_ops=frozenset({"named"}),
        host_placeholders=host.made,
        **fields,
    )


@pytest.mark.parametrize(
    ("name", "is_host", "needs_step"),
    [
        ("x", False, True),
        ("from_input", False, True),
        ("after_input", False, True),
        ("on_host", True, True),
        ("on_host_and_input", True, True),
        ("of_variable", True, False),
        ("named", False, True),
    ],
)
def test_placement(graph, ops, name, is_host, needs_step):
    plan, op = plan_of(graph, ops), ops[0][name].op
    assert (plan.is_host(op), plan.needs_step(op)) == (is_host, needs_step)


def test_what_a_hook_adds_later_has_its_place(graph, ops):
    plan = plan_of(graph, ops)
    assert plan.is_host(ops[0]["of_variable"].op)
    later = tf.reduce_max(ops[0]["x"])
    assert not plan.is_host(later.op)
    assert plan.needs_step(later.op)


def test_another_step_of_the_same_graph(graph, ops):
    tensors, _ = ops
    plan = plan_of(graph, ops, jit_compile=True, host_calls_every=3, stop_on_nan=True)
    other = plan.of([tensors["on_host"]], [tensors["named"].op])
    assert (other.fetches, other.targets) == ((tensors["on_host"],), (tensors["named"].op,))
    assert not other.jit_compile
    assert (other.host_calls_every, other.stop_on_nan) == (3, True)
    assert other.is_loss(tensors["from_input"])
    assert not other.is_loss(tensors["on_host"])
    assert plan.fetches == ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.jit_compile = False
