"""Randomness without a seed, which `check_deterministic` must name."""

import itertools

import numpy as np
import pytest

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.testing import check_deterministic

from ..models import CLASSES, WIDTH, X, Y, classifier, failure, train_wrapped
from ..sound_models import SOUND


@pytest.mark.parametrize("name", ["dense", "dropout", "batch_norm", "gan"])
def test_sound(name):
    check_deterministic(*SOUND[name], replicas=2 if name == "dropout" else 1)


def test_initial_values_from_numpy():
    def logits_of(features, training):
        values = np.random.normal(size=[WIDTH, CLASSES]).astype(np.float32)
        return tf.matmul(features, tf.get_variable("kernel", initializer=values))

    found = failure(check_deterministic, classifier(logits_of), X, Y)
    assert "kernel: its initial values differ between two trainings." in found
    assert 'tf.get_variable("kernel", initializer=values)' in found
    assert "or with a seeded NumPy generator" in found


def test_noise_from_numpy_in_py_func():
    def logits_of(features, training):
        noise = tf.py_func(lambda x: x + np.float32(np.random.rand()), [features], tf.float32)
        noise.set_shape(features.shape)
        return tf.layers.dense(noise, CLASSES)

    found = failure(check_deterministic, classifier(logits_of), X, Y)
    assert "The initial values are equal. The loss differs from step 1 on." in found
    assert "tf.py_func(lambda x: x + np.float32(np.random.rand()), [features], tf.float32)" in found
    assert "not with NumPy's or Python's" in found


def test_noise_from_numpy_while_model_fn_runs():
    def loss_of(labels, logits, params):
        smoothing = float(np.random.rand()) / 4
        labels = tf.one_hot(labels, CLASSES)
        return tf.losses.softmax_cross_entropy(labels, logits, label_smoothing=smoothing)

    found = failure(check_deterministic, classifier(loss_of=loss_of), X, Y)
    assert "from step 1 on. Different in the end: dense/kernel, dense/bias." in found


def test_variables_named_by_a_counter():
    numbers = itertools.count()

    def logits_of(features, training):
        return tf.layers.dense(features, CLASSES, name=f"layer_{next(numbers)}")

    found = failure(check_deterministic, classifier(logits_of), X, Y)
    assert "layer_0/kernel: a variable of one call of model_fn only." in found
    assert "layer_1/kernel: a variable of one call of model_fn only." in found
    assert "not by a counter or a set" in found


def test_rate_that_only_the_last_step_shows():
    rates = itertools.count(1)

    def train(loss):
        return train_wrapped(loss, tf.train.GradientDescentOptimizer(0.1 * next(rates)))

    found = failure(check_deterministic, classifier(train=train), X, Y, steps=1)
    assert "The loss differs" not in found
    assert "in the end: dense/kernel, dense/bias." in found
