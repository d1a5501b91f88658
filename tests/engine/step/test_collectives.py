"""The table of collectives: against TensorFlow and NumPy, and who looks there."""

import ast
import functools
import json
import pathlib
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.graph_sessions import run
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import op_def_registry
from tensorflow.python.ops import gen_tpu_ops
from tensorflow.python.tpu.ops import tpu_ops

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.graph import graph_def, graph_ops
from tpu_estimator_compat.engine.jax.lowering.xla_collectives import rewrites
from tpu_estimator_compat.engine.step import collectives
from tpu_estimator_compat.engine.step.collectives import StableHloOp
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram

BY_TYPE = {row.op_type: row for row in collectives.TABLE}
PACKAGE = pathlib.Path(tpu.__file__).parent


def ring(replicas):
    return [[i, (i + 1) % replicas] for i in range(replicas)]


def numpy_permute(values, pairs):
    received = np.zeros_like(values)
    for source, target in pairs:
        received[target] = values[source]
    return received


def numpy_all_to_all(values, groups, concat, split):
    received = {}
    for group in groups:
        blocks = {r: np.split(values[r], len(group), split) for r in group}
        for place, r in enumerate(group):
            received[r] = np.concatenate([blocks[other][place] for other in group], concat)
    return np.stack([received[r] for r in range(len(values))])


def numpy_sum(values, groups):
    return np.stack(
        [values[list(next(g for g in groups if r in g))].sum(0) for r in range(len(values))]
    )


def _cases(replicas):
    """By name: a function of a replica's tensor, and NumPy's of those of all replicas."""
    cases = {}
    for name, pairs in {
        "shift": ring(replicas)[:-1],
        "ring": ring(replicas),
        "itself": [[0, 0]],
    }.items():
        cases[name] = (
            functools.partial(tpu_ops.collective_permute, source_target_pairs=pairs),
            functools.partial(numpy_permute, pairs=pairs),
        )
    groupings = {"all": [list(range(replicas))]}
    if replicas > 1:
        groupings["by_two"] = [list(range(replicas))[first::2] for first in (0, 1)]
    for grouping, groups in groupings.items():
        cases[f"sum_{grouping}"] = (
            functools.partial(tpu_ops.cross_replica_sum, group_assignment=groups),
            functools.partial(numpy_sum, groups=groups),
        )
        for concat, split in ((0, 0), (1, 0), (0, 1)):
            cases[f"all_to_all_{grouping}_{concat}_{split}"] = (
                functools.partial(
                    tpu_ops.all_to_all,
                    concat_dimension=concat,
                    split_dimension=split,
                    split_count=len(groups[0]),
                    group_assignment=groups,
                ),
                functools.partial(numpy_all_to_all, groups=groups, concat=concat, split=split),
            )
    return cases


EACH_CASE = pytest.mark.parametrize(
    ("replicas", "case"), [(replicas, case) for replicas in (2, 4) for case in _cases(replicas)]
)


@EACH_CASE
def test_replicas_get_what_numpy_says(replicas, case, graph, strategy):
    op, expected = _cases(replicas)[case]
    values = np.random.RandomState(0).normal(size=[replicas, 4, 8]).astype(np.float32)
    x = tf.placeholder(tf.float32, [4, 8])
    y = op(tf.tanh(x))
    sent = np.tanh(values)
    program = ReplicaProgram(graph, [x], [y], replicas=replicas)
    [found] = run(strategy(replicas), program, values)
    np.testing.assert_allclose(found, expected(sent), rtol=1e-6, atol=1e-6)


@EACH_CASE
def test_gradients_go_back_to_who_sent(replicas, case, graph, strategy):
    """An exchange is linear in all replicas' values: its gradient is the transposed matrix."""
    op, function = _cases(replicas)[case]
    shape = [replicas, 4, 4]
    size = int(np.prod(shape))
    columns = [function(unit.reshape(shape)).ravel() for unit in np.eye(size, dtype=np.float32)]
    weights = np.random.RandomState(1).normal(size=size).astype(np.float32)

    x = tf.placeholder(tf.float32, shape[1:])
    y = op(x)
    [gradient] = tf.gradients(y, x, x if y.shape == x.shape else tf.reshape(x, y.shape))
    [found] = run(
        strategy(replicas),
        ReplicaProgram(graph, [x], [gradient], replicas=replicas),
        weights.reshape(shape),
    )
    np.testing.assert_allclose(found.ravel(), columns @ weights, rtol=1e-5, atol=1e-5)


def test_training_through_exchanges(tmp_path, strategy):
    """Replicas train on each other's part of the batch."""

    def model_fn(features, labels, mode, params):
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        swapped = tpu_ops.collective_permute(features * w, [[0, 1], [1, 0]])
        there = tpu_ops.all_to_all(swapped, 0, 0, 2)
        back = tpu_ops.all_to_all(there, 0, 0, 2)
        loss = tf.reduce_mean((back - labels) ** 2)
        optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.01))
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn(params):
        x = np.arange(8, dtype=np.float32)
        return (
            tf.data.Dataset.from_tensors((x, x))
            .unbatch()
            .repeat()
            .batch(params["batch_size"], True)
        )

    config = tpu.RunConfig(model_dir=tmp_path, train_distribute=strategy(2))
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=8)
    estimator.train(input_fn, steps=2)
    w, own = np.float32(1), np.arange(8, dtype=np.float32).reshape(2, 4)
    for _ in range(2):
        w -= 0.01 * np.mean(2 * (own[::-1] * w - own) * own[::-1])
    assert estimator.get_variable_value("w") == pytest.approx(w, rel=1e-5)


@pytest.mark.parametrize("case", _cases(1))
def test_a_replica_that_is_alone(case, graph, session):
    op, expected = _cases(1)[case]
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    found = session.run(op(tf.constant(x)) + 1)
    np.testing.assert_array_equal(found, expected(x[np.newaxis])[0] + 1)


def test_the_table_has_every_collective_of_tensorflows_tpus():
    known = op_def_pb2.OpList()
    known.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    found = {
        definition.name: definition.input_arg[1].name
        for definition in known.op
        if {arg.name for arg in definition.input_arg} & {"group_assignment", "source_target_pairs"}
        and hasattr(gen_tpu_ops, re.sub("(?<=[a-z])(?=[A-Z])", "_", definition.name).lower())
    }
    assert found == {row.op_type: row.participants for row in collectives.TABLE}


@EACH_CASE
def test_gradients_are_in_the_table(replicas, case, graph):
    x = tf.placeholder(tf.float32, [4, 4])
    y = _cases(replicas)[case][0](x)
    [gradient] = tf.gradients(y, x)
    assert gradient.op.type == BY_TYPE[y.op.type].gradient
    assert collectives.participants(gradient.op) is not None


@EACH_CASE
def test_what_xla_is_given(replicas, case, graph):
    """A gradient too: of a permutation, whose pairs are computed."""
    x = tf.placeholder(tf.float32, [4, 4])
    y = _cases(replicas)[case][0](x)
    for op in (y.op, *(g.op for g in tf.gradients(y, x))):
        node = tf.NodeDef()
        node.CopyFrom(op.node_def)
        rewrites(graph, 2)[op.type](node)
        lowering = BY_TYPE[op.type].lowering
        if isinstance(lowering, StableHloOp):
            assert node.op == "XlaCustomCallV2"
            assert (
                node.attr["call_target_name"].s == f"tpu_estimator_compat.{lowering.name}".encode()
            )
            config = json.loads(node.attr["backend_config"].s)
            assert config.pop(lowering.participants) == collectives.participants(op).tolist()
            assert config == {name: op.get_attr(name) for name in lowering.attributes}
        else:
            assert node.op == lowering.op_type
            attributes = {arg.name for arg in op_def_registry.get(node.op).attr}
            assert set(lowering.attributes) < attributes
            assert {name: node.attr[name].s for name in lowering.attributes} == lowering.attributes


def test_nobody_else_has_a_list():
    named = {row.op_type for row in collectives.TABLE}
    named |= {row.lowering.name for row in collectives.TABLE if row.op_type not in collectives.SUMS}
    for path in PACKAGE.rglob("*.py"):
        if path != pathlib.Path(collectives.__file__):
            tree = ast.walk(ast.parse(path.read_text()))
            texts = {node.value for node in tree if isinstance(node, ast.Constant)}
            assert not named & {text for text in texts if isinstance(text, str)}, path


def test_a_sum_over_one_after_an_exchange(graph, strategy):
    """What TensorFlow asks for outside a TPU shard context; its constant is in an earlier stage."""
    x = tf.placeholder(tf.float32, [2])
    summed = tpu_ops.cross_replica_sum(x, [[0, 1]])
    kept = tpu_ops.cross_replica_sum(summed * 2, [[0]])
    program = ReplicaProgram(graph, [x], [kept], replicas=2)
    assert [len(stage.collectives) for stage in program.stages] == [1, 0]
    [found] = run(strategy(2), program, np.float32([[1, 2], [3, 4]]))
    np.testing.assert_array_equal(found, [[8, 12], [8, 12]])


def test_in_branches(graph, session):
    x = tf.placeholder(tf.float32, [4, 4])
    for case, (op, _) in _cases(1).items():
        inside = tf.cond(x[0, 0] > 0, lambda op=op: op(x), lambda: -x)
        [op_type] = {row.op_type for row in collectives.TABLE if in_functions(graph, inside, row)}
        if BY_TYPE[op_type].alone:
            assert (session.run(inside, {x: np.ones([4, 4])}) == 1).all(), case
        else:
            with pytest.raises(NotImplementedError, match=f"Move {BY_TYPE[op_type].api} out of"):
                session.run(inside, {x: np.ones([4, 4])})
    for op, _ in _cases(2).values():
        inside = tf.cond(x[0, 0] > 0, lambda op=op: tf.size(op(x)), lambda: 0)
        program = ReplicaProgram(graph, [x], [inside], replicas=2)
        with pytest.raises(NotImplementedError, match=r"inside a tf\.cond or tf\.while_loop"):
            program._graph_def(0)


def in_functions(graph, tensor, row):
    return graph_def.functions_with(graph, graph_ops.ancestors([tensor.op], ()), {row.op_type})


def test_group_assignment_must_name_every_replica_once(graph):
    summed = tpu_ops.cross_replica_sum(tf.constant(1.0), [[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="must name each of the 4 replicas exactly once"):
        collectives.groups_of(summed.op, 4)


@pytest.mark.parametrize("pairs", [[[0, 1], [0, 0]], [[0, 1], [1, 1]], [[0, 2]], [[-1, 0]]])
def test_pairs_must_name_replicas_at_most_once(pairs, graph, strategy):
    x = tf.placeholder(tf.float32, [])
    y = tpu_ops.collective_permute(x, pairs)
    with pytest.raises(ValueError, match="must name each of the 2 replicas at most once"):
        run(strategy(2), ReplicaProgram(graph, [x], [y], replicas=2), np.float32([0, 1]))


def test_pairs_must_be_constant(graph, session):
    pairs = tf.placeholder(tf.int32, [1, 2])
    y = tpu_ops.collective_permute(tf.constant(1.0), pairs)
    with pytest.raises(ValueError, match="source_target_pairs must be a constant"):
        session.run(y, {pairs: [[0, 0]]})


def test_a_piece_for_nobody(graph, session):
    pieces = tpu_ops.all_to_all(tf.zeros([2]), 0, 0, 2, [[0, 1]])
    with pytest.raises(ValueError, match="split_count=2 needs as many replicas in a group"):
        session.run(pieces)


@pytest.mark.parametrize(
    ("case", "adds_up"), [("sum_all", True), ("ring", False), ("all_to_all_all_0_0", False)]
)
def test_training_demands_a_sum(case, adds_up, graph):
    x = tf.zeros([4])
    op, _ = _cases(2)[case]
    tf.cond(x[0] > 0, lambda: op(x), lambda: x)
    assert collectives.adds_up(graph) == adds_up
    op(x)
    assert collectives.adds_up(graph) == adds_up
