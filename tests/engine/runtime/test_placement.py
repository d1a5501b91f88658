"""Where replicas are."""

import tensorflow as tf

from tpu_estimator_compat.engine.runtime import placement


def test_a_common_device(strategy):
    assert placement.common_device(tf.distribute.get_strategy()) is None
    assert placement.common_device(strategy(1)) is None
    assert placement.common_device(strategy(2)).endswith("CPU:0")
    assert placement.common_device(tf.distribute.MultiWorkerMirroredStrategy()) is None
