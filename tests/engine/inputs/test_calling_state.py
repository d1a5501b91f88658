"""Input that is made of variables, under the rules of TPU execution: nothing is read ahead."""

import pytest
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu


def model_fn(features, labels, mode, params):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((weight - features) ** 2) / 2
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def position(params):
    made = tf.get_variable("position", [], initializer=tf.zeros_initializer(), trainable=False)
    return tf.fill([params["batch_size"]], tf.assign_add(made, 1.0) - 1.0)


def the_step(params):
    return tf.fill([params["batch_size"]], tf.cast(tf.train.get_global_step(), tf.float32))


@pytest.mark.parametrize("input_fn", [position, the_step])
def test_each_step_has_its_own(tmp_path, input_fn):
    """In loops of two steps, in two trainings: the features are 0 to 5."""
    config = tpu.RunConfig(model_dir=str(tmp_path), tpu_config=tpu.TPUConfig(2))
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=4)
    for steps in (4, 6):
        estimator.train(input_fn, max_steps=steps)
    weight = 0.0
    for features in range(6):
        weight += 0.1 * (features - weight)
    assert estimator.get_variable_value("weight") == pytest.approx(weight, rel=1e-5)
    if input_fn is position:
        assert estimator.get_variable_value("position") == 6
