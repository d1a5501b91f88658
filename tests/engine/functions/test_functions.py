"""How functions run: of iterators, and what Grappler does to them."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.eager import context

from tpu_estimator_compat.engine.functions import functions
from tpu_estimator_compat.engine.functions.tuning import SINGLE_THREADED


def test_a_function_of_an_iterator_is_traced_for_each_type_of_it():
    traced = []

    def total(iterator, factor):
        x = next(iterator)
        traced.append(x.shape.as_list())
        size = tf.cast(tf.size(x) if x.shape[0] is None else x.shape[0], tf.int64)
        return tf.reduce_sum(x), size * factor

    function = functions.IteratorFunction(total)
    for size in (4, 4, 2, 7, 3):
        iterator = iter(tf.data.Dataset.from_tensors(tf.ones([size])).repeat(2))
        for factor in (1, 10):
            result = [float(value) for value in function(iterator, tf.constant(factor, tf.int64))]
            assert result == [size, size * factor]
    # Then for any length, as by a tf.function that is to be traced seldom.
    assert traced == [[4], [None]]


def test_a_function_does_not_keep_its_iterator():
    function = functions.IteratorFunction(lambda iterator: next(iterator))
    iterator = iter(tf.data.Dataset.range(3))
    assert list(map(int, function(iterator))) == [0]
    gone = weakref.ref(iterator)
    del iterator
    assert gone() is None


class PlainIterator:
    """An object of Python to TensorFlow, as the iterators of TF1's strategies are."""

    def __init__(self, dataset):
        self._iterator = iter(dataset)

    def __next__(self):
        return next(self._iterator)


def test_iterators_whose_handles_are_captured():
    function = functions.IteratorFunction(lambda iterator, n: next(iterator) * n)
    for start in (1, 100):
        iterator = PlainIterator(tf.data.Dataset.range(start, start + 10))
        assert not functions.handles_of(iterator)
        factors = tf.constant([1, 10], tf.int64)
        results = [[int(value) for value in function(iterator, n)] for n in factors]
        assert results == [[start], [10 * (start + 1)]]


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


def test_operations_may_sink_into_branches_and_what_runs_once_is_not_rewritten():
    with functions.call_options():
        assert not rewriter_options().disable_tfg_optimizer
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
