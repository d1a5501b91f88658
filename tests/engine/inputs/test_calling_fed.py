"""Placeholders that input_fn returns, and that hooks feed."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator as estimators


def model_fn(features, labels, mode):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    predictions = {"y": features * weight}
    if mode == estimators.ModeKeys.PREDICT:
        return estimators.EstimatorSpec(mode, predictions)
    loss = tf.reduce_mean((predictions["y"] - labels) ** 2)
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, step)
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, predictions["y"])}
    return estimators.EstimatorSpec(mode, predictions, loss, train_op, metrics)


class Feeding(tf.train.SessionRunHook):
    """Feeds other points of `y = 3 x` in every run."""

    def __init__(self):
        self.runs = 0

    def input_fn(self):
        self.x = tf.placeholder(tf.float32, [None], name="x")
        self.y = tf.placeholder(tf.float32, [None])
        return self.x, self.y

    def before_run(self, run_context):
        self.runs += 1
        x = np.arange(self.runs, self.runs + 3, dtype=np.float32)
        return tf.train.SessionRunArgs(None, feed_dict={self.x: x, self.y: 3 * x})


def test_a_hook_feeds_all_modes(tmp_path):
    """The numbers are those of the original on TensorFlow 2.15."""
    estimator = estimators.Estimator(model_fn, str(tmp_path))
    hook = Feeding()
    estimator.train(hook.input_fn, hooks=[hook], steps=4)
    assert hook.runs == 4
    assert estimator.get_variable_value("weight") == pytest.approx(2.2881258, rel=1e-6)
    hook = Feeding()
    results = estimator.evaluate(hook.input_fn, hooks=[hook], steps=3)
    assert results["loss"] == pytest.approx(5.236571, rel=1e-5)
    assert results["mae"] == pytest.approx(2.1356227, rel=1e-5)
    hook = Feeding()
    found = estimator.predict(lambda: hook.input_fn()[0], hooks=[hook])
    values = [next(found)["y"] for _ in range(8)]
    found.close()
    expected = 2.2881258 * np.array([1, 2, 3, 2, 3, 4, 3, 4])
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_names_are_fed_too_and_what_is_made_of_placeholders(tmp_path):
    def input_fn():
        halves = tf.placeholder(tf.float32, [2], name="halves")
        return halves * 2.0, halves * 6.0

    hook = tf.train.FeedFnHook(lambda: {"halves:0": np.array([1.0, 2.0], np.float32)})
    estimator = estimators.Estimator(model_fn, str(tmp_path))
    estimator.train(input_fn, hooks=[hook], steps=60)
    assert estimator.get_variable_value("weight") == pytest.approx(3.0, abs=1e-3)


def test_without_a_feed_it_says_what_is_missing(tmp_path):
    estimator = estimators.Estimator(model_fn, str(tmp_path))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must feed a value for placeholder"):
        estimator.train(Feeding().input_fn, steps=1)
