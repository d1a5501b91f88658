"""The key by which steps share a function: it differs wherever their operations do."""

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.program import build_step
from tpu_estimator_compat.engine.step.random_streams import RandomStreams

from .step_ops import StepOps


@pytest.fixture
def ops(graph):
    return StepOps(graph, replicas=1)


@pytest.fixture
def counter():
    with eager.eager_mode():
        return tf.Variable(0, dtype=tf.int64, trainable=False, use_resource=True)


def plan_of(ops, *, calls=True, **fields):
    call = ops.tensors["of_scalar"].op
    if calls:
        fields |= {"targets": (call,), "host_calls": frozenset({call.name})}
    fetches = fields.pop("fetches", (ops.tensors["from_input"],))
    return ops.plan(fetches=fetches, **fields)


def contents_of(plan, **kwargs):
    return build_step(plan, VariableStore(tf.distribute.get_strategy()), **kwargs).contents()


def test_equal_steps_share_a_function(ops):
    assert contents_of(plan_of(ops)).signature == contents_of(plan_of(ops)).signature


def test_each_way_of_making_host_calls_has_a_key_of_its_own(ops, counter):
    every_2, every_3 = (plan_of(ops, host_calls_every=n) for n in (2, 3))
    found = [
        contents_of(plan_of(ops, calls=False)),
        contents_of(plan_of(ops)),
        contents_of(plan_of(ops), queued=True),
        contents_of(every_2),
        contents_of(every_2, step_in_loop=counter),
        contents_of(every_3, step_in_loop=counter),
        contents_of(every_3, step_in_loop=counter, queued=True),
    ]
    assert len({contents.signature for contents in found}) == len(found)


def test_a_step_that_left_its_queue_is_another(ops):
    step = build_step(plan_of(ops), VariableStore(tf.distribute.get_strategy()), queued=True)
    queued = step.contents().signature
    step.queue.leave()
    assert step.contents().signature != queued


def test_each_part_is_in_the_key(ops):
    metric, loss = ops.tensors["on_host"], ops.tensors["from_input"]
    found = [
        contents_of(plan_of(ops)),
        contents_of(plan_of(ops), streams=RandomStreams()),
        contents_of(plan_of(ops), fed=[ops.product]),
        contents_of(plan_of(ops, jit_compile=True)),
        contents_of(plan_of(ops, fetches=(loss, metric))),
        contents_of(plan_of(ops, fetches=(metric, loss))),
        contents_of(plan_of(ops, fetches=(ops.tensors["of_variable"], metric))),
    ]
    assert len({contents.signature for contents in found}) == len(found)


def test_steps_of_several_replicas_share_no_function(ops, strategy):
    step = build_step(plan_of(ops), VariableStore(strategy(2)))
    assert step.contents() is None
