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


def test_it_exchanges_what_the_package_does():
    assert EXCHANGES == collectives.OP_TYPES


def test_sums_in_a_branch_and_in_a_loop(chip):
    def total(value):
        return tf.raw_ops.CrossReplicaSum(input=value, group_assignment=[[0, 1]])

    def step():
        x = tf.cond(tf.constant(True), lambda: total(replica() + 1), lambda: 0.0)
        return tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, total(x)), (0, x))[1]

    assert run(chip, step) == [12.0, 12.0]


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


def test_the_patches_are_taken_back():
    from tensorflow.python.tpu import tpu

    real = tpu.split_compile_and_replicate
    with simulated(SimulatedTPU((1, 1, 1, 2))):
        assert tpu.split_compile_and_replicate is not real
    assert tpu.split_compile_and_replicate is real
