"""Branches and loops of both of TensorFlow's forms are read as they run."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tpu_estimator_compat.v1 as legacy
from tpu_estimator_compat.tools.to_keras.graph import BRANCH, LOOP, SCAN, Weight
from tpu_estimator_compat.tools.to_keras.reading import read
from tpu_estimator_compat.tools.to_keras.scans import find_scans
from tpu_estimator_compat.tools.to_keras.simplify import simplify

from .evaluating import evaluated

v1 = tf.compat.v1
VALUES = ([0.5, 1.0], [-3.0, 0.25], [1.5, -4.0])


def branch(x, w):
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * w, lambda: x + 1.0)


def nested_branches(x, w):
    def otherwise():
        return tf.cond(x[0] > 1.0, lambda: x - w, lambda: tf.ones_like(x))

    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 2.0, otherwise)


def two_results(x, w):
    a, b = tf.cond(x[0] > 0.0, lambda: (x, w), lambda: (w, tf.constant([7.0, 8.0])))
    return a - b


def switched_off(x, w):
    training = v1.placeholder_with_default(False, [])
    return tf.cond(training, lambda: x * w, lambda: x + 1.0)


def loop(x, w):
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x + w), [0, x])[1]


def branch_in_a_loop(x, w):
    def body(i, a):
        return i + 1, tf.cond(a[0] > 1.0, lambda: a * x, lambda: a + w)

    return tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]


def loop_in_a_loop(x, w):
    def body(i, a):
        return i + 1, tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b * w + x), [0, a])[1]

    return tf.while_loop(lambda i, a: i < 4, body, [0, x])[1]


def loop_in_a_branch(x, w):
    def summed():
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + w), [0, x])[1]

    return tf.cond(x[0] > 0.0, summed, lambda: w)


def arrays(x, w):
    given = tf.TensorArray(tf.float32, 5).unstack(tf.stack([x, w, x, w, x]))
    results = tf.TensorArray(tf.float32, 5)

    def body(i, state, results):
        state = state + given.read(i) * tf.cast(i, tf.float32)
        return i + 1, state, results.write(i, state * w)

    _, state, results = tf.while_loop(lambda i, *_: i < 5, body, [0, x, results])
    return results.stack() + state


def scan(x, w):
    return tf.scan(lambda a, e: a * w + e, tf.stack([x, w, x]), initializer=x)


def mapped(x, w):
    return tf.map_fn(lambda e: e * w + tf.reduce_sum(x), tf.stack([x, w, x]))


def mapped_over_two(x, w):
    return tf.map_fn(lambda e: e[0] * e[1] + w[1], (x, x * 2.0), fn_output_signature=tf.float32)


def scan_of_unknown_length(x, w):
    return tf.scan(lambda a, e: a * w[0] + e, x, initializer=0.0)


def rnn(x, w):
    inputs = tf.stack([tf.stack([x, x * 2.0, w]), tf.stack([w, x, x])])
    cell = legacy.nn.rnn_cell.BasicRNNCell(2)
    kernel = legacy.initializers.constant(0.5)
    with v1.variable_scope("rnn", initializer=kernel, reuse=v1.AUTO_REUSE):
        outputs, state = legacy.nn.dynamic_rnn(
            cell, inputs, tf.cast(tf.abs(x), tf.int32), dtype=tf.float32, parallel_iterations=1
        )
    return outputs + state[:, None]


SCANS = [arrays, scan, mapped, mapped_over_two, scan_of_unknown_length, rnn]
KINDS = [branch, nested_branches, two_results, switched_off, loop, branch_in_a_loop]
KINDS += [loop_in_a_loop, loop_in_a_branch, *SCANS]


@pytest.fixture(params=["TensorFlow 1", "functions"])
def form(request):
    before = v1.control_flow_v2_enabled()
    (v1.disable_control_flow_v2 if request.param == "TensorFlow 1" else v1.enable_control_flow_v2)()
    yield request.param
    (v1.enable_control_flow_v2 if before else v1.disable_control_flow_v2)()


@pytest.mark.parametrize("kind", KINDS)
def test_control_flow_is_read_as_it_runs(kind, form):
    graph = tf.Graph()
    with graph.as_default(), v1.Session(graph=graph) as session:
        x = v1.placeholder(tf.float32, [None], "x")
        variable = v1.get_variable("w", initializer=[0.5, -1.5], use_resource=True)
        result = kind(x, variable.read_value() if form == "functions" else variable)
        session.run(v1.global_variables_initializer())
        values = {v.op.name: session.run(v) for v in v1.global_variables()}
        weights = {k: Weight(k, v.shape, "float32", True, v) for k, v in values.items()}
        program = read(graph, {"x": x}, {"y": result}, weights)
        simplify(program)
        find_scans(program)
        wanted = [session.run(result, {x: value}) for value in VALUES]
    for value, expected in zip(VALUES, wanted, strict=True):
        [found] = evaluated(program, {"x": np.array(value, np.float32)})
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    kinds = {node.kind for node in program.nodes()}
    assert (SCAN in kinds) == (kind in SCANS)
    assert bool(kinds & {BRANCH, LOOP}) == (kind not in [switched_off, *SCANS])
