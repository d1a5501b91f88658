"""Exchanges among machines: the parts that need no other machine."""

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.runtime import workers


def test_a_feed_is_refused_by_its_name():
    workers.check_nothing_fed([])
    with tf.Graph().as_default():
        fed = tf.compat.v1.placeholder(tf.float32, [], name="fed")
    with pytest.raises(NotImplementedError, match=r"A hook feeds 'fed:0' in a step of several"):
        workers.check_nothing_fed([(fed, np.zeros([]))])


def test_functions_that_send_and_receive_are_made_once():
    assert workers._sending() is workers._sending()
    assert workers._receiving(tf.float32) is workers._receiving(tf.float32)
    assert workers._receiving(tf.float32) is not workers._receiving(tf.int32)
