"""What differs from replica to replica of one graph: random numbers, and the replica's id."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.compiler.tf2xla.python import xla
from tensorflow.python.tpu.ops import tpu_ops

from tpu_estimator_compat.engine.runtime import eager
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram


def run(strategy, program):
    @tf.function(autograph=False)
    def step():
        return strategy.run(lambda: program([], None))

    with eager.eager_mode():
        fetched = tf.nest.map_structure(strategy.experimental_local_results, step())
    return [np.stack([part.numpy() for part in parts]) for parts in fetched]


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
