import tensorflow as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine import topology
from tpu_estimator_compat.engine.topology import tpu_system
from tpu_estimator_compat.spec import ModeKeys


def test_tpu_strategy_on_a_tpu(chip):
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver("local")
    topology_of_chip = tpu_system.initialize(resolver)
    one = tf.tpu.experimental.DeviceAssignment.build(
        topology_of_chip, computation_shape=[1, 1, 1, 1], num_replicas=1
    )
    made = tpu.TPUStrategy(resolver, steps_per_run=20, device_assignment=one)
    assert made.cluster_resolver is resolver
    assert (made.num_replicas_in_sync, made.steps_per_run) == (1, 20)
    assert tpu.TPUStrategy(resolver).num_replicas_in_sync == 2


def test_tpu_strategy_without_a_tpu():
    made = tpu.TPUStrategy(steps_per_run=3)
    assert made.cluster_resolver is None
    assert made.num_replicas_in_sync == len(tf.config.list_logical_devices("CPU"))
    with made.scope():
        assert tf.distribute.get_strategy() is made.strategy
    config = tpu.RunConfig(train_distribute=made)
    where = topology.resolve(config, ModeKeys.TRAIN, tpu_semantics=False)
    assert where.strategy is made.strategy
