"""A step as a value."""

import dataclasses

import pytest
import tensorflow.compat.v1 as tf

from .step_ops import StepOps


@pytest.fixture
def step_ops(graph):
    return StepOps(graph)


def test_what_has_a_value_without_a_step(step_ops):
    plan = step_ops.plan()
    tensors = step_ops.tensors
    assert [n for n, t in tensors.items() if not plan.needs_step(t.op)] == ["of_variable"]
    assert plan.needs_step(tf.reduce_max(tensors["x"]).op)  # as a hook adds it later


def test_another_step_of_the_same_graph(step_ops):
    tensors = step_ops.tensors
    plan = step_ops.plan(jit_compile=True, host_calls_every=3, trains=True)
    other = plan.of([tensors["on_host"]], [tensors["named"].op])
    assert (other.fetches, other.targets) == ((tensors["on_host"],), (tensors["named"].op,))
    assert not other.jit_compile
    assert (other.host_calls_every, other.trains) == (3, True)
    assert other.loss is tensors["from_input"]
    assert plan.fetches == ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.jit_compile = False
