"""Models that do not learn, whose reason `check_learns` must name."""

import pytest
import tf_keras

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.testing import check_learns, run

from ..models import (
    CLASSES,
    X,
    Y,
    classifier,
    failure,
    gradient_descent,
    predictions_of,
    train_wrapped,
)
from ..sound_models import SOUND, normalized, slim_normalized


@pytest.mark.parametrize(
    "name", ["dense", "embedding", "lstm", "batch_norm", "dropout", "averages", "accumulation"]
)
def test_sound(name):
    check_learns(*SOUND[name], replicas=2 if name == "dense" else 1)


@pytest.mark.parametrize("layers", [tf.keras.layers, tf_keras.layers], ids=["keras3", "tf_keras"])
def test_layers_of_keras_run_their_updates(layers):
    def logits_of(features, training):
        hidden = layers.BatchNormalization()(layers.Dense(6)(features), training=training)
        return tf.layers.dense(hidden, CLASSES)

    check_learns(classifier(logits_of), X, Y)
    moved = run(classifier(logits_of), X, Y).moved
    assert "batch_normalization/moving_mean" in moved


@pytest.mark.parametrize(
    ("logits_of", "line"),
    [
        (normalized, "tf.layers.batch_normalization(hidden, training=training, momentum=0.5)"),
        (slim_normalized, "slim.fully_connected("),
    ],
)
def test_batch_normalization_without_updates(logits_of, line):
    found = failure(check_learns, classifier(logits_of), X, Y)
    assert "an update in UPDATE_OPS that nobody runs" in found
    assert line in found
    assert "tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS))" in found


def test_learning_rate_zero():
    def train(loss):
        return train_wrapped(loss, tf.train.GradientDescentOptimizer(0.0))

    found = failure(check_learns, classifier(train=train), X, Y, steps=2)
    assert "dense/kernel: it did not move in 2 step(s). Its gradient is not zero." in found
    assert "look at the learning rate" in found
    assert "2.54231 in the first step, 2.54231 in step 2" in found


def test_global_step_is_forgotten():
    """The step of an optimizer without one; the training would have no end."""

    def train(loss):
        return tf.tpu.CrossShardOptimizer(gradient_descent()).minimize(loss)

    found = failure(check_learns, classifier(train=train), X, Y)
    assert "global_step: it is 0 after 50 step(s)." in found
    assert "pass tf.train.get_global_step() to minimize or apply_gradients" in found


def dead(features, training):
    hidden = tf.layers.dense(
        features, 6, tf.nn.relu, name="dead", bias_initializer=tf.constant_initializer(-99.0)
    )
    return tf.layers.dense(hidden, CLASSES, name="dense")


def stopped(features, training):
    hidden = tf.stop_gradient(tf.layers.dense(features, 6, name="stopped"))
    return tf.layers.dense(hidden, CLASSES, name="dense")


def unused(features, training):
    tf.layers.dense(features, 6, name="unused")
    return tf.layers.dense(features, CLASSES, name="dense")


@pytest.mark.parametrize(
    ("logits_of", "said"),
    [
        (dead, "dead/kernel: it did not move in 20 step(s). Its gradient is zero everywhere."),
        (stopped, "stopped/kernel: it did not move in 20 step(s). The loss does not depend on it"),
        (unused, "unused/kernel: it did not move in 20 step(s). The loss does not depend on it"),
    ],
)
def test_variable_without_gradient(logits_of, said):
    found = failure(check_learns, classifier(logits_of), X, Y, steps=20)
    assert said in found
    assert f"in {logits_of.__name__} " in found
    assert "dense/bias" not in found


def test_frozen_variables_are_named_by_the_caller():
    check_learns(classifier(unused), X, Y, frozen=["unused/"])


def test_optimizer_that_leaves_a_variable_out():
    def train(loss):
        optimizer = tf.tpu.CrossShardOptimizer(gradient_descent())
        kernel = tf.trainable_variables()[:1]
        return optimizer.minimize(loss, tf.train.get_global_step(), var_list=kernel)

    found = failure(check_learns, classifier(train=train), X, Y)
    assert "dense/bias: it did not move in 50 step(s). The optimizer leaves it out." in found
    assert "name it in `frozen`" in found
    assert "dense/kernel" not in found


def test_loss_becomes_nan():
    def loss_of(labels, logits, params):
        return tf.reduce_mean(tf.log(logits[:, 0]) + tf.cast(labels, tf.float32))

    found = failure(check_learns, classifier(loss_of=loss_of), X, Y)
    assert "loss: it is NaN in step 1." in found
    assert "tf.log(logits[:, 0])" in found
    assert "within logarithms" in found


def test_gradient_that_is_nan_though_the_loss_is_not():
    def loss_of(labels, logits, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return loss + tf.reduce_mean(tf.sqrt(tf.nn.relu(logits - 99.0)))

    found = failure(check_learns, classifier(loss_of=loss_of), X, Y)
    assert "dense/kernel: its gradient is not finite in the first step." in found


def test_loss_that_rises():
    def train(loss):
        return train_wrapped(-loss)

    found = failure(check_learns, classifier(train=train), X, Y, steps=10)
    assert "loss: 2.54231 in the first step" in found
    assert "in step 10." in found
    assert "below 0.9 times the first" in found


@pytest.mark.parametrize("steps", [0, -1])
def test_bad_steps(steps):
    with pytest.raises(ValueError, match=f"steps must be positive, got {steps}"):
        check_learns(classifier(predictions_of=predictions_of), X, Y, steps=steps)
