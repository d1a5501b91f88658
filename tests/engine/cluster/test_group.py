"""What machines tell each other: checks of it that need no other machine."""

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.engine.cluster import group
from tpu_estimator_compat.engine.cluster.group import MachineLostError, State


def test_a_feed_is_refused_by_its_name():
    group.check_nothing_fed([])
    with tf.Graph().as_default():
        fed = tf.compat.v1.placeholder(tf.float32, [], name="fed")
    with pytest.raises(NotImplementedError, match=r"A hook feeds 'fed:0' in a step of several"):
        group.check_nothing_fed([(fed, np.zeros([]))])


def test_the_first_machine_that_failed_is_named():
    group.check_none_failed(np.asarray([State.READY, State.LEAVING]))
    with pytest.raises(MachineLostError, match="because machine 1 of 3 failed"):
        group.check_none_failed(np.asarray([State.READY, State.FAILED, State.FAILED]))


def test_data_is_uneven_where_some_ended_and_others_go_on():
    for even in ([State.OUT_OF_DATA] * 2, [State.OUT_OF_DATA, State.LEAVING], [State.READY] * 2):
        group.check_even_data(np.asarray(even))
    with pytest.raises(ValueError, match=r"The data of machine\(s\) \[0, 2\] ended while .* \[1\]"):
        group.check_even_data(np.asarray([State.OUT_OF_DATA, State.READY, State.OUT_OF_DATA]))
