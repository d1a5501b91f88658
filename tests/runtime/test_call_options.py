"""How functions run: what Grappler does to them, and what it leaves alone."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.eager import context

from tpu_estimator_compat.runtime import functions
from tpu_estimator_compat.runtime.tuning import SINGLE_THREADED

Config = rewriter_config_pb2.RewriterConfig


def rewriter_options():
    serialized = context.context().function_call_options.config_proto_serialized
    return tf.compat.v1.ConfigProto.FromString(serialized).graph_options.rewrite_options


@pytest.mark.parametrize("executor", ["", SINGLE_THREADED])
def test_grappler_goes_over_a_step_once(executor):
    with functions.call_options(executor=executor, branches=False):
        options = rewriter_options()
        assert context.context().function_call_options.executor_type == executor
    assert options.meta_optimizer_iterations == Config.ONE
    assert options.memory_optimization == Config.NO_MEM_OPT
    assert options.layout_optimizer == Config.OFF
    assert options.disable_tfg_optimizer
    assert not options.disable_meta_optimizer


def test_operations_may_sink_into_branches():
    with functions.call_options():
        assert not rewriter_options().disable_tfg_optimizer


def test_what_runs_once_is_not_rewritten():
    with functions.call_options(optimize=False):
        assert rewriter_options().disable_meta_optimizer


def test_the_options_before_come_back_after_an_error():
    before = context.context().function_call_options
    with pytest.raises(RuntimeError), functions.call_options(branches=False):
        raise RuntimeError
    assert context.context().function_call_options is before


def test_what_the_user_has_set_stays():
    current = context.context()
    before = current.function_call_options
    config = tf.compat.v1.ConfigProto()
    options = config.graph_options.rewrite_options
    options.meta_optimizer_iterations = Config.TWO
    options.memory_optimization = Config.SCHEDULING_HEURISTICS
    options.layout_optimizer = Config.ON
    current.function_call_options = context.FunctionCallOptions("", config)
    try:
        with functions.call_options():
            assert rewriter_options() == options
    finally:
        current.function_call_options = before


def test_the_numbers_are_those_of_all_passes():
    weights = tf.constant(np.random.RandomState(0).randn(16, 16).astype(np.float32))

    def step(x):
        for _ in range(6):
            x = tf.nn.softmax(tf.nn.relu(tf.nn.bias_add(x @ weights, weights[0])) * 3.0 + 0.5)
            x = tf.cond(tf.reduce_sum(x) > 0.0, lambda x=x: x * 2.0 + x, lambda x=x: x - 1.0)
        return x

    x = tf.ones([8, 16])
    plain = tf.function(step)(x)
    for branches in (False, True):
        with functions.call_options(branches=branches):
            np.testing.assert_array_equal(tf.function(step)(x), plain)
