"""What looks at a variable after a write sees it; all else stays as it is."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support import judged

from tpu_estimator_compat.engine.refs import resource_graph

TWINS = {
    "VariableV2": "VarHandleOp",
    "Assign": "AssignVariableOp",
    "ApplyGradientDescent": "ResourceApplyGradientDescent",
    "ApplyAdam": "ResourceApplyAdam",
    "AssignAdd": "AssignAddVariableOp",
}
ALIASES = {
    "identity": tf.identity,
    "stop_gradient": tf.stop_gradient,
    "prevent_gradient": lambda x: tf.raw_ops.PreventGradient(input=x),
    "check_numerics": lambda x: tf.check_numerics(x, "finite"),
    "ensure_shape": lambda x: tf.raw_ops.EnsureShape(input=x, shape=[2, 2]),
    "guarantee_const": lambda x: tf.raw_ops.GuaranteeConst(input=x),
    "placeholder_with_default": lambda x: tf.placeholder_with_default(x, [2, 2]),
    "several": lambda x: tf.stop_gradient(tf.identity(x)),
    "grad_pass_through": lambda x: tf.grad_pass_through(tf.identity)(x),
    "identity_n": lambda x: tf.identity_n([x[0], x])[1],
    "print": lambda x: tf.raw_ops.Print(input=x, data=[x], message="", first_n=0),
}


def _is_plain_read(op):
    return op.type == "Identity" and op.inputs[0].op.type == "VariableV2"


@pytest.mark.parametrize("optimizer", ["GradientDescentOptimizer", "AdamOptimizer"])
def test_a_graph_without_a_look_after_a_write_stays_as_it_is(optimizer):
    """Its operations, names and inputs; their types but for the twins."""
    with judged.old_behavior(), tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        weight = tf.get_variable("w", [4, 4])
        rows = tf.concat([tf.reshape(weight, [4, 4])[:2], *tf.split(weight, 2)[1:]], 0)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, rows) - 1.0))
        tf.summary.scalar("loss", loss)
        getattr(tf.train, optimizer)(0.1).minimize(loss, tf.train.create_global_step())
        tf.global_variables_initializer()
    converted = judged.on_resources(graph)
    expected = [
        ("ReadVariableOp" if _is_plain_read(op) else TWINS.get(op.type, op.type))
        for op in graph.get_operations()
    ]
    pairs = list(zip(graph.get_operations(), converted.graph.get_operations(), strict=True))
    assert [op.name for op, _ in pairs] == [op.name for _, op in pairs]
    assert [op.type for _, op in pairs] == expected
    for op, ours in pairs:
        assert [t.name for t in ours.inputs] == [t.name for t in op.inputs]
        assert {o.name for o in op.control_inputs} <= {o.name for o in ours.control_inputs}
        if ours.type == op.type:
            kept = set(op.node_def.attr) - {"_class"}
            assert all(ours.node_def.attr[name] == op.node_def.attr[name] for name in kept)
            assert set(ours.node_def.attr) == kept


@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
def test_a_read_that_shares_the_memory_sees_a_write(alias):
    def build():
        ref, start = judged.variable("v", np.ones([2, 2], "f4"))
        seen = alias(tf.identity(ref))
        before = seen * 2.0
        with tf.control_dependencies([before]):
            written = tf.raw_ops.AssignAdd(ref=ref, value=np.ones([2, 2], "f4"))
        with tf.control_dependencies([written.op]):
            return [start], [before, seen * 2.0]

    judge = judged.in_sessions(build)
    assert [np.mean(each) for each in judge[0]] == [2.0, 4.0]


def test_a_value_that_was_computed_before_a_write_stays():
    def build():
        ref, start = judged.variable("v", 1.0)
        computed = tf.identity(ref) * 10.0
        with tf.control_dependencies([computed]):
            written = tf.raw_ops.Assign(ref=ref, value=2.0)
        with tf.control_dependencies([written.op]):
            return [start], [computed + 0.0, tf.identity(ref) + 0.0]

    assert judged.in_sessions(build) == [[10.0, 2.0], [20.0, 2.0]]


def test_each_write_is_followed_by_one_shared_read():
    def build():
        ref, start = judged.variable("v", 1.0)
        read, looks = tf.identity(ref), []
        last = read * 1.0
        for _ in range(3):
            with tf.control_dependencies([last]):
                written = tf.raw_ops.AssignAdd(ref=ref, value=1.0)
            with tf.control_dependencies([written.op]):
                looks += [read + 0.0, read * 2.0]
            last = tf.group(*looks)
        return [start], looks

    assert judged.in_sessions(build)[0] == [2.0, 4.0, 3.0, 6.0, 4.0, 8.0]
    with tf.Graph().as_default() as graph:
        build()
    types = [op.type for op in judged.on_resources(graph).graph.get_operations()]
    assert types.count("ReadVariableOp") == 1 + 3


def test_a_write_to_another_variable_adds_no_read():
    with tf.Graph().as_default() as graph:
        one, two = judged.variable("one", 1.0)[0], judged.variable("two", 1.0)[0]
        read = tf.identity(one)
        with tf.control_dependencies([tf.raw_ops.AssignAdd(ref=two, value=1.0).op]):
            tf.identity(read * 2.0)
    assert len(judged.on_resources(graph).graph.get_operations()) == len(graph.get_operations())


def test_a_result_of_a_write_sees_a_later_one():
    """A ref that a write returns is the variable: `assign_add` and then `assign`."""

    def build():
        ref, start = judged.variable("v", 0.0)
        total, begin = judged.variable("total", 0.0)
        added = tf.raw_ops.AssignAdd(ref=ref, value=1.0)
        with tf.control_dependencies([added.op]):
            assigned = tf.raw_ops.Assign(ref=ref, value=10.0)
        with tf.control_dependencies([assigned.op]):
            return [start, begin], [tf.raw_ops.AssignAdd(ref=total, value=added) + 0.0]

    assert judged.in_sessions(build) == [[10.0], [20.0]]


PARTS = {
    "reshape": lambda x: tf.reshape(x, [4]),
    "expand_dims": lambda x: tf.expand_dims(x, 0),
    "squeeze": lambda x: tf.squeeze(tf.expand_dims(x, 0)),
    "bitcast": lambda x: tf.bitcast(tf.bitcast(x, tf.int32), tf.float32),
    "a row": lambda x: x[1],
    "the last of a split": lambda x: tf.split(x, 2)[1],
    "the last of unstacked rows": lambda x: tf.unstack(x)[1],
    "transpose": tf.transpose,
    "add_n of one": lambda x: tf.raw_ops.AddN(inputs=[x]),
    "a sum over nothing": lambda x: tf.reduce_sum(x, []),
    "of a part": lambda x: tf.identity(x[1])[0],
}
COPIES = {
    "sum": tf.reduce_sum,
    "add_n of several": lambda x: tf.raw_ops.AddN(inputs=[x, x]),
    "tile": lambda x: tf.tile(x, [2, 1]),
    "product": lambda x: x * 2.0,
    "of a part": lambda x: x[0] * 2.0,
}


@pytest.mark.parametrize(
    ("take", "is_named"),
    [(take, kind is PARTS) for kind in (PARTS, COPIES) for take in kind.values()],
    ids=[*PARTS, *(f"copy: {name}" for name in COPIES)],
)
def test_a_part_that_is_used_after_a_write_is_for_sessions(take, is_named):
    def build():
        ref, _ = judged.variable("v", np.ones([2, 2], "f4"))
        part = take(tf.identity(ref))
        tf.sin(part, "before")
        with tf.control_dependencies([part]):
            written = tf.raw_ops.AssignAdd(ref=ref, value=np.ones([2, 2], "f4"))
        with tf.control_dependencies([written.op]):
            tf.sin(part, "after")

    graph, _ = judged.captured(build)
    assert list(resource_graph.for_sessions(graph)) == (["after"] if is_named else [])
    converted = judged.on_resources(graph)
    converted.check([converted.graph.get_operation_by_name("before")])
    if is_named:
        with pytest.raises(NotImplementedError, match=r"after \(Sin\) uses a part .* 'v' that"):
            converted.check(converted.graph.get_operations())


def test_branches_that_write_are_for_sessions():
    """Of callers that may run later, too, such as `tf.data`."""

    def build():
        v = tf.get_variable("v", [2])
        tf.cond(v[0] > 0.0, lambda: v * 3.0, lambda: v.read_value(), name="reads")
        tf.cond(v[0] > 0.0, lambda: tf.assign_add(v, v), lambda: v * 2.0, name="writes")
        caller = v.graph.get_operation_by_name("writes")
        tf.raw_ops.RemoteCall(
            target="/cpu:0",
            args=list(caller.inputs)[1:],
            Tout=[tf.float32],
            f=caller.get_attr("then_branch").name,
        )

    graph, _ = judged.captured(build)
    assert list(resource_graph.for_sessions(graph)) == ["writes", "RemoteCall"]
    converted = judged.on_resources(graph)
    with pytest.raises(NotImplementedError, match=r"writes \(If\) has a branch .*use_resource"):
        converted.check(converted.graph.get_operations())
