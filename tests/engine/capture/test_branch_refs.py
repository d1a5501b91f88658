"""Branches and loops that write to variables from outside, in sessions of TensorFlow.

Its own branches, whose operations are in the graph around them, judge those that are captured;
`tests/conformance/scenarios/branches.py` has more programs.
"""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support import judged

from tpu_estimator_compat.engine.capture import branch_refs
from tpu_estimator_compat.tf_internals import FuncGraph

ONES = np.ones([2], "f4")


def a_part_within_a_branch_after_its_write(v, u, step):
    read = tf.reshape(tf.identity(v), [1, 2])

    def write():
        with tf.control_dependencies([tf.assign(v, [7.0, 8.0])]):
            return read * 2.0

    return [tf.cond(step > 1, write, lambda: read * 3.0)]


def a_branch_that_returns_what_it_took(v, u, step):
    read = tf.identity(v)

    def write():
        with tf.control_dependencies([tf.assign_add(v, ONES)]):
            return tf.identity(v), tf.identity(v)

    return list(tf.cond(step > 2, write, lambda: (read, read)))


def a_loop_that_looks_before_it_writes(v, u, step):
    """Its second iteration sees the first one's write, in a read from outside."""
    read = tf.reshape(tf.identity(u), [1, 2])

    def body(i, total):
        seen = tf.reduce_sum(read * 2.0)
        with tf.control_dependencies([seen]):
            written = tf.assign_add(u, ONES)
        with tf.control_dependencies([written]):
            return i + 1, total + seen

    return tf.while_loop(lambda i, t: i < 3, body, [0, 0.0], parallel_iterations=1)


def a_loop_until_a_variable_is_large(v, u, step):
    def body(i):
        with tf.control_dependencies([tf.assign_add(u, ONES)]):
            return i + 1

    return [tf.while_loop(lambda i: tf.reduce_sum(u * 2.0) < 17.0, body, [0])]


def a_branch_in_a_branch_in_a_loop(v, u, step):
    def inner():
        return tf.cond(step > 2, lambda: tf.assign(u, v * 5.0), lambda: tf.assign_add(u, v))

    def body(i):
        with tf.control_dependencies([tf.cond(i > 1.0, inner, lambda: tf.assign_sub(u, ONES))]):
            return i + 1.0

    with tf.control_dependencies([tf.while_loop(lambda i: i < 4.0, body, [0.0])]):
        return [u * 2.0]


def a_scatter_and_a_gather_in_a_branch(v, u, step):
    def write():
        return tf.gather(tf.scatter_add(u, [1], [5.0]), [0, 1])

    return [tf.cond(step > 1, write, lambda: tf.gather(u, [1, 0]))]


def a_write_through_the_result_of_another(v, u, step):
    added = tf.assign_add(v, ONES)
    return [tf.cond(step > 1, lambda: tf.assign_add(added, ONES * 10.0), lambda: v * 0.0)]


PROGRAMS = [
    a_part_within_a_branch_after_its_write,
    a_branch_that_returns_what_it_took,
    a_loop_that_looks_before_it_writes,
    a_loop_until_a_variable_is_large,
    a_branch_in_a_branch_in_a_loop,
    a_scatter_and_a_gather_in_a_branch,
    a_write_through_the_result_of_another,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_numbers_of_a_program(program):
    def build():
        v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
        u = tf.get_variable("u", [2], initializer=tf.zeros_initializer(), trainable=False)
        step = tf.get_variable("step", [], tf.int64, initializer=tf.zeros_initializer())
        count = tf.assign_add(step, 1)
        with tf.control_dependencies([count]):
            now = tf.identity(count)
        with tf.control_dependencies([now]):
            fetched = program(v, u, now)
        assert not any(tensor.dtype._is_ref_dtype for tensor in fetched)
        return [tf.global_variables_initializer()], [*fetched, now]

    judge = judged.in_sessions(build, steps=4, converts=False)
    assert any((a != b).any() for a, b in zip(judge[0][:-1], judge[-1][:-1], strict=True))


def test_a_write_gets_a_ref_of_its_own_and_a_value_a_read():
    def build():
        v = tf.get_variable("v", [2], initializer=tf.ones_initializer())

        def both():
            with tf.control_dependencies([tf.assign_add(v, v * 2.0), tf.assign_sub(v, [1.0, 1.0])]):
                return v + 1.0

        tf.cond(tf.constant(True), both, lambda: tf.identity(v))

    graph, _ = judged.captured(build)
    functions = graph.as_graph_def().library.function
    of_nodes = [[node.op for node in function.node_def] for function in functions]
    [found] = [types for types in of_nodes if "VariableV2" in types]
    assert "AssignAdd" in found
    assert found.count("VariableV2") == 1
    [caller] = [op for op in graph.get_operations() if op.type in ("If", "StatelessIf")]
    assert [tensor.name for tensor in caller.inputs][1:] == ["v/read:0"]


@pytest.mark.parametrize("has_read", [True, False])
def test_a_value_is_the_variables_own_read_or_one_made_for_it(has_read):
    def build():
        ref, start = judged.variable("v", 3.0)
        if has_read:
            tf.identity(ref, "read")
        return [start], [tf.cond(tf.constant(True), lambda: ref * 2.0, lambda: 0.0)]

    assert judged.in_sessions(build) == [[6.0]] * 2
    graph, _ = judged.captured(build)
    reads = [op.name for op in graph.get_operations() if op.type == "Identity" and op.inputs]
    assert [name for name in reads if name.startswith(("read", "v/"))] == [
        "read" if has_read else "v/value"
    ]


def test_a_session_takes_a_variable_without_a_value_around_a_branch():
    """As `initialized_value()` does, in which TensorFlow 1 read only in the branch."""

    def build():
        v = tf.get_variable("v", [], initializer=tf.ones_initializer())
        value = tf.cond(tf.is_variable_initialized(v), v.read_value, lambda: 5.0)
        return [v.initializer], [value]

    graph, (starts, values) = judged.captured(build)
    branch_refs.let_reads_fail_within(graph)
    with tf.Session(graph=graph) as session:
        assert session.run(values) == [5.0]
        session.run(starts)
        assert session.run(values) == [1.0]


def test_elsewhere_functions_may_not_write():
    original = FuncGraph._create_op_internal
    with branch_refs.from_outside():
        assert FuncGraph._create_op_internal is not original
    assert FuncGraph._create_op_internal is original
    with tf.Graph().as_default():
        ref, _ = judged.variable("v", 1.0)
        with pytest.raises(TypeError, match="float32_ref"):
            tf.cond(tf.constant(True), lambda: tf.assign_add(ref, 1.0), lambda: 0.0)
        with branch_refs.from_outside(), pytest.raises(TypeError, match="float32_ref"):
            tf.function(lambda: tf.assign_add(ref, 1.0))()
