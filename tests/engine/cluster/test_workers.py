"""Exchanges among machines: the parts that need no other machine."""

import tensorflow as tf

from tpu_estimator_compat.engine.cluster import workers


def test_functions_that_send_and_receive_are_made_once():
    assert workers._sending() is workers._sending()
    assert workers._receiving(tf.float32) is workers._receiving(tf.float32)
    assert workers._receiving(tf.float32) is not workers._receiving(tf.int32)
