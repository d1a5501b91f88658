"""Operations of branches and loops write to variables from outside."""

import pytest
import tensorflow.compat.v1 as tf
from support import judged

from tpu_estimator_compat.engine.capture import branch_refs
from tpu_estimator_compat.tf_internals import FuncGraph


def _functions(graph):
    """Types of the operations of each function."""
    functions = graph.as_graph_def().library.function
    return [[node.op for node in function.node_def] for function in functions]


def test_a_write_gets_a_ref_of_its_own_and_a_value_a_read():
    def build():
        v = tf.get_variable("v", [2], initializer=tf.ones_initializer())

        def both():
            with tf.control_dependencies([tf.assign_add(v, v * 2.0), tf.assign_sub(v, [1.0, 1.0])]):
                return v + 1.0

        tf.cond(tf.constant(True), both, lambda: tf.identity(v))

    graph, _ = judged.captured(build)
    found = [types for types in _functions(graph) if "AssignAdd" in types]
    assert len(found) == 1
    assert found[0].count("VariableV2") == 1
    assert all("VariableV2" not in types for types in _functions(graph) if types != found[0])
    [caller] = [op for op in graph.get_operations() if op.type in ("If", "StatelessIf")]
    assert [tensor.name for tensor in caller.inputs][1:] == ["v/read:0"]


@pytest.mark.parametrize("has_read", [True, False])
def test_a_value_is_the_variables_own_read_or_one_made_for_it(has_read):
    def build():
        ref, start = judged.variable("v", 3.0)
        if has_read:
            tf.identity(ref, "read")
        return [start], [tf.cond(tf.constant(True), lambda: ref * 2.0, lambda: 0.0)]

    judge, ours = judged.in_sessions(build)
    assert judge == ours == [[6.0]] * 2
    graph, _ = judged.captured(build)
    reads = [op.name for op in graph.get_operations() if op.type == "Identity" and op.inputs]
    assert [name for name in reads if name.startswith(("read", "v/"))] == [
        "read" if has_read else "v/value"
    ]


def test_a_branch_that_returns_a_ref_returns_its_value():
    def build():
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        taken = tf.cond(tf.constant(True), lambda: tf.assign_add(v, 1.0), lambda: tf.identity(v))
        assert not taken.dtype._is_ref_dtype
        return [v.initializer], [taken]

    judge, ours = judged.in_sessions(build)
    assert judge == ours == [[1.0], [2.0]]


def test_a_write_through_the_result_of_another_write():
    """A ref that a write outside of the branch returned is the variable."""

    def build():
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        added = tf.assign_add(v, 1.0)
        taken = tf.cond(tf.constant(True), lambda: tf.assign_add(added, 10.0), lambda: 0.0)
        return [v.initializer], [taken]

    judge, ours = judged.in_sessions(build)
    assert judge == ours == [[11.0], [22.0]]


def test_elsewhere_functions_may_not_write():
    original = FuncGraph._create_op_internal
    with branch_refs.from_outside():
        assert FuncGraph._create_op_internal is not original
    assert FuncGraph._create_op_internal is original
    with tf.Graph().as_default():
        ref, _ = judged.variable("v", 1.0)
        with pytest.raises(TypeError, match="float32_ref"):
            tf.cond(tf.constant(True), lambda: tf.assign_add(ref, 1.0), lambda: 0.0)
