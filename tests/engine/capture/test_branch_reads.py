"""A branch has read its variables before an update that comes after its `tf.cond`."""

import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import Fetching

from tpu_estimator_compat.engine.capture import branch_reads
from tpu_estimator_compat.estimator import Estimator
from tpu_estimator_compat.spec import EstimatorSpec


def late(value):
    def wait():
        time.sleep(0.05)
        return np.float32(0)

    zero = tf.numpy_function(wait, [], tf.float32)
    with tf.control_dependencies([zero]):
        return value.read_value() + 0.0


def by_cond(value):
    return tf.cond(value > -1.0, lambda: late(value), lambda: 0.0)


def by_case(value):
    index = tf.cast(value * 0.0, tf.int32)
    return tf.switch_case(index, [lambda: late(value), lambda: 0.0])


def within_another(value):
    return tf.cond(value > -1.0, lambda: by_cond(value), lambda: 0.0)


@pytest.mark.parametrize("read", [by_cond, by_case, within_another])
def test_an_update_waits_for_it(read, tmp_path):
    """As long as nothing else has the update wait: the branch takes its time."""
    hook = Fetching("read:0")

    def model_fn(features, labels, mode):
        value = tf.get_variable("value", [], initializer=tf.zeros_initializer())
        tf.identity(read(value), name="read")
        train_op = tf.group(
            value.assign_add(1.0), tf.assign_add(tf.train.get_or_create_global_step(), 1)
        )
        return EstimatorSpec(mode, loss=tf.constant(0.0), train_op=train_op)

    estimator = Estimator(model_fn, str(tmp_path))
    estimator.train(lambda: tf.data.Dataset.from_tensors(0.0).repeat(), steps=3, hooks=[hook])
    assert hook.seen == [0.0, 1.0, 2.0]


def test_a_function_names_each_operation_once():
    """TensorFlow itself makes its branches wait, and refuses a second mention."""
    value = tf.Variable(2.0, use_resource=True)

    @tf.function
    def read():
        return tf.cond(value > 0.0, lambda: value + 0.0, lambda: 0.0)

    with branch_reads.awaited():
        assert read().numpy() == 2.0


def test_a_graph_made_while_another_is_names_each_read_once():
    """As an evaluation does that a hook starts where the training's functions are called."""
    with tf.Graph().as_default(), tf.Session() as session:
        value = tf.get_variable("value", [], initializer=tf.ones_initializer(), use_resource=True)
        with branch_reads.awaited(), branch_reads.awaited():
            read = tf.cond(value > 0.0, lambda: value.read_value() + 1.0, lambda: 0.0)
        session.run(tf.global_variables_initializer())
        assert session.run(read) == 2.0
