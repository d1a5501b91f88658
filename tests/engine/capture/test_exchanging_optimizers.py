"""What a model sees of the strategy that it is captured for."""

import tensorflow as tf2

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.engine.capture.exchanging_optimizers import exchanging_optimizers


def test_every_tf_tells_the_number_of_replicas_and_gets_its_function_back():
    """The last two look TensorFlow's functions up when they are asked for, and keep them."""
    apis = [tf2, tf2.compat.v1, tf, tf.compat.v2]
    with exchanging_optimizers(2):
        assert [api.distribute.get_strategy().num_replicas_in_sync for api in apis] == 4 * [2]
    assert tf.distribute.get_strategy is tf2.compat.v1.distribute.get_strategy
    assert tf.compat.v2.distribute.get_strategy is tf2.distribute.get_strategy
    assert tf2.distribute.get_strategy().num_replicas_in_sync == 1
