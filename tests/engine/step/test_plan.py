"""A step as a value."""

import dataclasses

import pytest
import tensorflow.compat.v1 as tf

from .step_ops import StepOps


@pytest.fixture
def step_ops(graph):
    return StepOps(graph)


@pytest.mark.parametrize(
    ("name", "needs_step"),
    [
        ("x", True),
        ("from_input", True),
        ("after_input", True),
        ("on_host", True),
        ("on_host_and_input", True),
        ("of_variable", False),
        ("named", True),
    ],
)
def test_what_has_a_value_within_a_step_only(step_ops, name, needs_step):
    assert step_ops.plan().needs_step(step_ops.tensors[name].op) == needs_step


def test_what_a_hook_adds_later_has_its_place(step_ops):
    plan = step_ops.plan()
    assert not plan.needs_step(step_ops.tensors["of_variable"].op)
    assert plan.needs_step(tf.reduce_max(step_ops.tensors["x"]).op)


def test_another_step_of_the_same_graph(step_ops):
    tensors = step_ops.tensors
    plan = step_ops.plan(jit_compile=True, host_calls_every=3, trains=True)
    other = plan.of([tensors["on_host"]], [tensors["named"].op])
    assert (other.fetches, other.targets) == ((tensors["on_host"],), (tensors["named"].op,))
    assert not other.jit_compile
    assert (other.host_calls_every, other.trains) == (3, True)
    assert other.is_loss(tensors["from_input"])
    assert not other.is_loss(tensors["on_host"])
    assert plan.fetches == ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.jit_compile = False
