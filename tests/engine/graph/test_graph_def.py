import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.graph_sessions import run
from tensorflow.compiler.tf2xla.python import xla
from tensorflow.python.tpu.ops import tpu_ops

from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.graph import graph_def, graph_ops
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram


def test_large_variables_of_equal_values_share_no_buffer(graph, session):
    """The first update of one that shared its buffer would copy it."""
    shape = [1024, 2600]  # TensorFlow folds up to 10 MiB into constants, of which there is one
    for i in range(3):
        tf.get_variable(f"zeros_{i}", shape, initializer=tf.zeros_initializer())
    for i in range(2):
        tf.get_variable(f"ones_{i}", shape, initializer=tf.ones_initializer())
    variables = tf.global_variables()
    session.run(tf.global_variables_initializer())
    with eager.eager_mode():
        handles = [session.store[v.op.name].handle for v in variables]
        values = [tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32) for h in handles]
        arrays = [np.asarray(memoryview(value)) for value in values]
    assert [array.min() for array in arrays] == [0, 0, 0, 1, 1]
    assert [array.max() for array in arrays] == [0, 0, 0, 1, 1]
    assert len({array.ctypes.data for array in arrays}) == len(variables)


def test_control_inputs_on_fed_placeholders_do_not_import_them(graph, session):
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([x]):
        after = tf.constant(2.0) * x
    assert session.run(after, {x: 3.0}) == 6.0


def test_functions_are_copied_only_where_they_are_called(graph):
    with_loop = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
    plain = tf.constant(1) + 1
    assert graph_def.subgraph_def(graph, graph_ops.ancestors([with_loop.op], ())).library.function
    assert not graph_def.subgraph_def(graph, graph_ops.ancestors([plain.op], ())).library.function


def test_small_constants_are_made_once():
    graph = tf.Graph()
    with graph.as_default(), tf.control_dependencies(None):
        x = tf.placeholder(tf.float32, [])
        two, again = tf.constant(2.0, name="two"), tf.constant(2.0, name="again")
        other, whole = tf.constant(3.0, name="other"), tf.constant(2, name="whole")
        large = [tf.constant(np.zeros(1000, np.float32), name=f"large_{i}") for i in range(2)]
        with tf.control_dependencies([x]):
            waiting = tf.constant(2.0, name="waiting")
        marked = tf.constant(2.0, name="marked")
        marked.op._set_attr("_mark", tf.AttrValue(b=True))
        kept = tf.constant(2.0, name="kept")
    constants = [two, again, other, whole, *large, waiting, marked, kept]
    ops = [x.op, *(t.op for t in constants)]
    assert graph_def.repeated_constants(graph, ops, {"kept"}) == {"again": "two"}
    assert graph_def.repeated_constants(graph, ops[2:], {"kept"}) == {}


def test_a_program_with_repeated_constants_gives_the_same():
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [2, 3])
        ys = [tf.reduce_sum(x * tf.constant(2.0), tf.constant(axis)) for axis in (0, 1, 0)]
        ends = [tf.constant(2.0), tf.constant(2.0)]
    program = ReplicaProgram(graph, [x], [*ys, *ends])
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = tf.function(lambda v: program([v], None), autograph=False)(values)
    for value, wanted in zip(found, [2 * values.sum(axis) for axis in (0, 1, 0)], strict=False):
        np.testing.assert_array_equal(value, wanted)
    assert [float(end) for end in found[3:]] == [2.0, 2.0]


def draws():
    """Two numbers each, drawn with seeds of ops that follow each other."""

    def body(i, x):
        return i + 1, x + tf.random.normal([2], seed=3)

    _, looped = tf.while_loop(lambda i, x: i < 2, body, (0, tf.zeros(2)))
    return [
        tf.random.uniform([2], seed=1),
        tf.random.uniform([2], seed=2),
        tf.cond(tf.constant(True), lambda: tf.random.uniform([2], seed=1), lambda: tf.zeros(2)),
        looped,
    ]


@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_draw_numbers_of_their_own(replicas, graph, strategy):
    tf.set_random_seed(7)
    fetches = draws()
    found = run(strategy(replicas), ReplicaProgram(graph, [], fetches, replicas=replicas))
    every = np.concatenate(found).round(6)
    assert len(np.unique(every)) == every.size - 2 * replicas  # the branch has the first one's seed
    again = run(strategy(replicas), ReplicaProgram(graph, [], fetches, replicas=replicas))
    np.testing.assert_array_equal(found, again)


def test_the_first_replica_draws_what_a_sole_one_does(graph, session, strategy):
    tf.set_random_seed(7)
    fetches = draws()
    found = run(strategy(2), ReplicaProgram(graph, [], fetches, replicas=2))
    np.testing.assert_array_equal([of_all[0] for of_all in found], session.run(fetches))


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_a_replica_knows_its_id(replicas, graph, strategy):
    """Also in a branch; here each puts its row in a matrix that all of them have."""
    own = tf.cond(tf.constant(True), xla.replica_id, lambda: -1)
    row = tf.fill([1, 3], tf.cast(own, tf.float32) + 1)
    rows = tf.scatter_nd([[xla.replica_id()]], row, [replicas, 3])
    groups = [list(range(replicas))]
    gathered = tpu_ops.cross_replica_sum(rows, groups)
    program = ReplicaProgram(graph, [], [own, gathered], replicas=replicas)
    ids, matrices = run(strategy(replicas), program)
    np.testing.assert_array_equal(ids, np.arange(replicas))
    expected = np.repeat(np.arange(1, replicas + 1, dtype=np.float32)[:, np.newaxis], 3, axis=1)
    np.testing.assert_array_equal(matrices, [expected] * replicas)
