import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.embedding import sharding
from tpu_estimator_compat.embedding.lookup import Occurrences
from tpu_estimator_compat.embedding.tables import default_initializer
from tpu_estimator_compat.engine.cluster.workers import Workers
from tpu_estimator_compat.engine.state import sharded_variables, shards
from tpu_estimator_compat.engine.state.shards import Shard


@pytest.mark.parametrize(("rows", "machines"), [(2, 2), (9, 2), (11, 4), (12, 4)])
def test_shards_are_neighbouring_rows_and_all_of_them(rows, machines):
    found = [Shard.of_machine("t", [rows, 3], machines, i) for i in range(machines)]
    assert [i for s in found for i in range(s.first, s.first + s.rows)] == list(range(rows))
    assert max(s.rows for s in found) - min(s.rows for s in found) <= 1


def test_pieces_are_a_shard_and_no_larger_than_they_may_be(monkeypatch):
    monkeypatch.setattr(shards, "PIECE", 25)
    shard = Shard.of_machine("t", [9, 3], 2, 1)
    assert [(p.first, p.rows) for p in shard.pieces(12)] == [(5, 2), (7, 2)]
    assert [(p.first, p.rows) for p in shard.pieces(100)] == [(5, 1), (6, 1), (7, 1), (8, 1)]
    assert shard.pieces(12)[1].slice_info.spec == "9 3 7,2:0,3"


def first_values(initializer, machine, seed=None):
    """First values of a machine's rows of a table of [6, 4], as `get_variable` makes them."""
    shard = Shard.of_machine("t", [6, 4], 2, machine)
    with tf.Graph().as_default():
        tf.set_random_seed(seed)
        of_rows = sharding.initializer(initializer, shard)
        variable = tf.get_variable("t", shard.own_shape, initializer=of_rows)
        with tf.Session() as session:
            session.run(variable.initializer)
            return session.run(variable)


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize(
    "initializer",
    [
        default_initializer(4),
        tf.random_uniform_initializer(seed=5),
        tf.random_normal_initializer,
        tf2.random_normal_initializer(seed=5),
    ],
    ids=["default", "seeded", "class", "of TensorFlow 2"],
)
def test_no_two_machines_begin_with_the_same_random_numbers(initializer, seed):
    rows = np.concatenate([first_values(initializer, i, seed) for i in range(2)])
    assert len(np.unique(rows)) == rows.size


MATRIX = np.arange(24.0, dtype=np.float32).reshape(6, 4)


@pytest.mark.parametrize(
    "initializer",
    [
        tf.constant_initializer(MATRIX),
        tf2.constant_initializer(MATRIX),
        lambda shape, dtype: tf.constant(MATRIX, dtype),
        lambda shape, dtype, partition_info: tf.constant(MATRIX, dtype),
    ],
    ids=["constant", "constant of TensorFlow 2", "function", "deaf to partition_info"],
)
def test_values_of_a_whole_table_are_shared_out(initializer):
    rows = [first_values(initializer, i) for i in range(2)]
    np.testing.assert_array_equal(np.concatenate(rows), MATRIX)


def test_an_id_of_no_table_is_an_error_that_names_it():
    found = Occurrences(tf2.constant([2, 9, 0, -1], tf.int64), None, None, [4, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)user.*\[0, 9\).*9 -1"):
        found.checked(9, "user", "Feature user has ids that table users does not have.")


def test_a_checkpoint_without_a_table_names_the_saver(tmp_path):
    with tf.Graph().as_default():
        shard = Shard.of_machine("users", [6, 4], 2, 0)
        table = tf.get_variable("users", shard.own_shape, use_resource=True)
        shards.make_slice(table, shard)
        variables = sharded_variables.ShardedVariables([table], None, Workers(2, 0, 2), None)
        with tf.Session() as session:
            session.run(table.initializer)
            path = tf.train.Saver({"renamed": [table]}).save(session, str(tmp_path / "model"))
    variables.check(None)
    with pytest.raises(ValueError, match=r"has no 'users' of shape \[6, 4\].*own names"):
        variables.check(path)
