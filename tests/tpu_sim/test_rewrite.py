"""What the simulated TPU does with anybody's computations, and what it refuses."""

import numpy as np
import pytest
import tensorflow as tf
from support.simulated_tpu.rewrite import EXCHANGES
from support.simulated_tpu.runtime import SimulatedTPU, simulated

from tpu_estimator_compat.engine.step import collectives


@pytest.fixture(scope="module")
def chip():
    with simulated(SimulatedTPU((1, 1, 1, 2))) as made:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver("local")
        tf.tpu.experimental.initialize_tpu_system(resolver)
        made.strategy = tf.distribute.TPUStrategy(resolver)
        yield made


@pytest.fixture(autouse=True)
def set_up(chip):
    chip.strict, chip.moves_to_host = True, False


def run(chip, function, *args):
    @tf.function(autograph=False)
    def step():
        return chip.strategy.run(function, args=args)

    return [value.numpy() for value in chip.strategy.experimental_local_results(step())]


def replica():
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)


def test_every_core_computes_with_what_is_its_own(chip):
    with chip.strategy.scope():
        variable = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)

    def add():
        variable.assign_add(replica() + 1)
        return replica() + variable.read_value()

    assert run(chip, add) == [4.0, 5.0]


def test_it_exchanges_what_the_package_does():
    assert EXCHANGES == collectives.OP_TYPES


def test_sums_over_replicas(chip):
    assert run(
        chip, lambda: tf.raw_ops.CrossReplicaSum(input=replica() + 1, group_assignment=[[0, 1]])
    ) == [3.0, 3.0]
    assert run(
        chip, lambda: tf.raw_ops.CrossReplicaSum(input=replica() + 1, group_assignment=[[0], [1]])
    ) == [1.0, 2.0]


def test_all_to_all_and_permutations(chip):
    def all_to_all():
        return tf.raw_ops.AllToAll(
            input=tf.stack([replica(), replica() + 10]),
            group_assignment=[[0, 1]],
            concat_dimension=0,
            split_dimension=0,
            split_count=2,
        )

    np.testing.assert_array_equal(run(chip, all_to_all), [[0, 1], [10, 11]])

    def permute():
        return tf.raw_ops.CollectivePermute(input=replica() + 1, source_target_pairs=[[0, 1]])

    assert run(chip, permute) == [0.0, 1.0]


@pytest.mark.parametrize("way", [True, False])
def test_a_sum_in_a_branch(chip, way):
    def branch():
        return tf.cond(
            tf.constant(way),
            lambda: tf.raw_ops.CrossReplicaSum(input=replica() + 1, group_assignment=[[0, 1]]),
            lambda: replica() + 5,
        )

    assert run(chip, branch) == ([3.0, 3.0] if way else [5.0, 6.0])


def test_a_sum_in_a_loop(chip):
    def loop():
        return tf.while_loop(
            lambda i, _: i < 3,
            lambda i, x: (i + 1, tf.raw_ops.CrossReplicaSum(input=x, group_assignment=[[0, 1]])),
            (0, replica() + 1),
        )[1]

    assert run(chip, loop) == [12.0, 12.0]


def test_replicas_that_take_different_ways_would_wait_for_ever(chip):
    def branch():
        return tf.cond(
            replica() > 0,
            lambda: tf.raw_ops.CrossReplicaSum(input=1.0, group_assignment=[[0, 1]]),
            lambda: 0.0,
        )

    with pytest.raises(tf.errors.InvalidArgumentError, match="replicas take different ways"):
        run(chip, branch)


def test_groups_name_every_replica_once(chip):
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not name each of 2 replicas once"):
        run(chip, lambda: tf.raw_ops.CrossReplicaSum(input=1.0, group_assignment=[[0, 0]]))


def test_a_variable_of_the_host(chip):
    with tf.device("/cpu:0"):
        variable = tf.Variable(1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="a resource of the host"):
        run(chip, lambda: variable + 1)


def test_strings(chip):
    with pytest.raises(tf.errors.InvalidArgumentError, match="StringFormat has no kernel"):
        run(chip, lambda: tf.strings.length(tf.strings.format("{}", replica())))


def test_strings_that_come_in(chip):
    text = tf.constant("text")
    with pytest.raises(tf.errors.InvalidArgumentError, match="of string into a TPU computation"):
        run(chip, lambda: tf.identity(text))


def test_an_op_without_a_kernel(chip):
    with pytest.raises(tf.errors.InvalidArgumentError, match="op Lu has no kernel"):
        run(chip, lambda: tf.raw_ops.Lu(input=tf.eye(2))[0])


def test_what_has_to_be_constant(chip):
    with pytest.raises(tf.errors.InvalidArgumentError, match="compile-time constant"):
        run(chip, lambda: tf.reshape(tf.zeros([4]), tf.cast([replica() + 4], tf.int32)))


def test_a_loop_without_an_end(chip):
    def bad():
        with tf.GradientTape() as tape:
            x = replica()
            tape.watch(x)
            y = tf.while_loop(lambda y: y < 100.0, lambda y: y * y + 2.0, [x])[0]
        return tape.gradient(y, x)

    with pytest.raises(tf.errors.InvalidArgumentError, match="fixed tensor list size"):
        run(chip, bad)


def test_ops_that_are_marked_run_on_the_host(chip):
    before = len(chip.clusters)

    def marked():
        text = tf.compat.v1.tpu.outside_compilation(
            lambda x: tf.strings.length(tf.strings.as_string(x)), 12
        )
        return tf.ensure_shape(text, []) + 1

    assert run(chip, marked) == [3, 3]
    assert chip.clusters[before].on_host >= {"AsString", "StringLength"}


def test_ops_that_tensorflow_moves(chip):
    chip.moves_to_host = True
    before = len(chip.clusters)

    def show():
        tf.print("on the host")
        return replica()

    assert run(chip, show) == [0.0, 1.0]
    assert "PrintV2" in chip.clusters[before].on_host


def test_the_patches_are_taken_back():
    from tensorflow.python.tpu import tpu

    real = tpu.split_compile_and_replicate
    with simulated(SimulatedTPU((1, 1, 1, 2))):
        assert tpu.split_compile_and_replicate is not real
    assert tpu.split_compile_and_replicate is real
