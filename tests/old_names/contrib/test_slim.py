import numpy as np

import tpu_estimator_compat.v1 as tf

from .small_net import BATCH, input_fn


def test_a_batch_norm_of_slim_trains_and_evaluates(tmp_path):
    slim = tf.contrib.slim

    def model_fn(features, labels, mode):
        with slim.arg_scope([slim.batch_norm], decay=0.5, scale=True, is_training=mode == "train"):
            net = slim.fully_connected(features["x"], 1, None, normalizer_fn=slim.batch_norm)
        loss = tf.losses.mean_squared_error(labels, net)
        train_op = slim.learning.create_train_op(loss, tf.train.AdamOptimizer(0.1))
        predictions = {"mean": tf.reduce_mean(net)}
        return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op)

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    batches = lambda: input_fn({"batch_size": BATCH})  # noqa: E731
    estimator.train(batches, steps=100)
    assert estimator.get_variable_value("global_step") == 100
    moved = estimator.get_variable_value("fully_connected/BatchNorm/moving_mean")
    assert np.abs(moved).max() > 1e-3
    assert estimator.evaluate(batches, steps=4)["loss"] < 0.2
