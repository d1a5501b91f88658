"""Where the operations of a step belong, and what is sent between its parts."""

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.step.cut import cut

from .step_ops import StepOps


@pytest.fixture
def ops(graph):
    return StepOps(graph)


OF_HOST = {
    "x": False,
    "from_input": False,
    "after_input": False,
    "on_host": True,
    "on_host_and_input": True,
    "of_scalar": True,
    "of_variable": True,
    "named": False,
}


@pytest.mark.parametrize("name", OF_HOST)
def test_placement(ops, name):
    tensor = ops.tensors[name]
    parts = cut(ops.plan(fetches=(tensor,), targets=(tensor.op,)))
    of_host = ([tensor], [tensor.op], [], [])
    found = (parts.host.fetches, parts.host.targets, parts.own, parts.device.targets)
    assert found == (of_host if OF_HOST[name] else (*of_host[2:], *of_host[:2]))


def test_what_a_hook_adds_later_has_its_place(graph, ops):
    before = ops.tensors["of_variable"]
    assert cut(ops.plan(fetches=(before,))).host.fetches == [before]
    later = tf.reduce_max(ops.tensors["x"])
    assert cut(ops.plan(fetches=(later,))).own == [later]


def test_what_one_program_computes_of_variables_is_the_replicas(ops):
    variable, metric = ops.tensors["of_variable"], ops.tensors["on_host"]
    parts = cut(ops.plan(fetches=(variable, metric)), one_program=True)
    assert (parts.own, parts.host.fetches) == ([variable], [metric])


def test_a_host_call_that_needs_nothing_stays_with_the_host(ops):
    call = ops.tensors["of_variable"].op
    plan = ops.plan(targets=(call,), host_calls=frozenset({call.name}))
    parts = cut(plan, one_program=True)
    assert (parts.device.targets, parts.host.targets, parts.host_calls.targets) == ([], [call], [])
    parts = cut(plan, one_program=True, apart=plan.host_calls)
    assert (parts.device.targets, parts.host.targets, parts.host_calls.targets) == ([], [], [call])


def test_only_what_the_host_takes_is_sent(ops):
    metric, call = ops.tensors["on_host"], ops.tensors["of_scalar"].op
    parts = cut(ops.plan(fetches=(metric,)))
    assert list(parts.transfers.pairs.values()) == [(ops.over_replicas, ops.product)]
    assert parts.host.feeds == [ops.over_replicas]
    assert parts.transfers.from_replicas == [ops.product]
    parts = cut(ops.plan(fetches=(metric,), targets=(call,)), apart=frozenset({call.name}))
    assert (parts.host.feeds, parts.host_calls.feeds) == ([ops.over_replicas], [ops.scalars])
    assert len(parts.transfers.from_replicas) == 2


def test_what_is_fed_is_neither_computed_nor_sent(ops):
    metric = ops.tensors["on_host_and_input"]
    mean = metric.op.inputs[0]
    parts = cut(ops.plan(fetches=(metric,)), [mean])
    assert mean in parts.host.feeds
    assert not parts.transfers.pairs


def test_one_replica_sends_scalars_as_they_are(ops):
    plan = ops.plan(fetches=(ops.tensors["of_scalar"],))
    assert cut(plan).transfers.from_replicas[0].shape == [1]
    [(taken, sent)] = cut(plan, one_replica=True).transfers.pairs.values()
    assert (taken.shape, sent) == ([], ops.total)


def test_the_device_part_gives_what_it_and_the_host_want(ops):
    own, metric = ops.tensors["from_input"], ops.tensors["on_host"]
    fed = ops.tensors["named"]
    plan = ops.plan(fetches=(own, metric, own), targets=(own.op, metric.op))
    device = cut(plan, [fed]).device
    assert device.feeds == [ops.tensors["x"], fed]
    assert device.fetches == [own, ops.product]
    assert device.targets == [own.op]
