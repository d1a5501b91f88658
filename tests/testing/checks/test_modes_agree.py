"""Modes that are not those of one model: `check_modes_agree` must say where."""

import pytest

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.testing import check_modes_agree

from ..models import CLASSES, EVAL, PREDICT, TRAIN, X, Y, classifier, failure, train_with_updates
from ..sound_models import SOUND


@pytest.mark.parametrize("name", ["dense", "batch_norm", "dropout", "tuple", "averages"])
def test_sound(name):
    check_modes_agree(*SOUND[name])


def by_mode(logits_of):
    """A classifier whose logits depend on the mode."""

    def model_fn(features, labels, mode, params):
        return classifier(lambda x, training: logits_of(x, mode))(features, labels, mode, params)

    return model_fn


@pytest.mark.parametrize("seed", [None, 7])
def test_dropout_in_all_modes(seed):
    def logits_of(features, mode):
        hidden = tf.nn.dropout(tf.layers.dense(features, 16), rate=0.5, seed=seed)
        return tf.layers.dense(hidden, CLASSES)

    found = failure(check_modes_agree, by_mode(logits_of), X, Y)
    assert "EVAL: the same examples, given twice, do not give the same loss." in found
    assert "PREDICT: the same examples, given twice, do not give the same " in found
    assert "rate=0.5, seed=seed)" in found
    assert "training=(mode == tf.estimator.ModeKeys.TRAIN)" in found


def test_dropout_in_prediction_alone():
    def logits_of(features, mode):
        hidden = tf.layers.dense(features, 16)
        hidden = tf.layers.dropout(hidden, training=mode == PREDICT)
        return tf.layers.dense(hidden, CLASSES)

    found = failure(check_modes_agree, by_mode(logits_of), X, Y)
    assert "PREDICT: the same examples" in found
    assert "EVAL" not in found


@pytest.mark.parametrize("fused", [True, False])
def test_batch_statistics_in_prediction(fused):
    def logits_of(features, mode):
        hidden = tf.reshape(tf.layers.dense(features, 6), [-1, 1, 1, 6])
        training = mode in (TRAIN, PREDICT)
        hidden = tf.layers.batch_normalization(hidden, training=training, fused=fused)
        return tf.layers.dense(tf.layers.flatten(hidden), CLASSES)

    found = failure(check_modes_agree, by_mode(logits_of), X, Y)
    assert "PREDICT: batch normalization uses the statistics of the batch." in found
    assert "training=training, fused=fused)" in found
    assert "EVAL" not in found


@pytest.mark.parametrize("fused", [True, False])
def test_batch_normalization_that_never_trains(fused):
    def logits_of(features, training):
        hidden = tf.reshape(tf.layers.dense(features, 6), [-1, 1, 1, 6])
        hidden = tf.layers.batch_normalization(hidden, fused=fused)
        return tf.layers.dense(tf.layers.flatten(hidden), CLASSES)

    model_fn = classifier(logits_of, train=train_with_updates)
    found = failure(check_modes_agree, model_fn, X, Y)
    assert "TRAIN: batch normalization uses its moving averages, and never updates them." in found
    assert "tf.layers.batch_normalization(hidden, fused=fused)" in found
    check_modes_agree(model_fn, X, Y, frozen_batch_norm=True)


def test_variable_of_evaluation_alone():
    def logits_of(features, mode):
        logits = tf.layers.dense(features, CLASSES)
        return logits * tf.get_variable("scale", []) if mode == EVAL else logits

    found = failure(check_modes_agree, by_mode(logits_of), X, Y)
    assert "scale: a variable of EVAL that TRAIN has not, and no checkpoint will have." in found
    assert 'tf.get_variable("scale", [])' in found
    assert "by the same names, in all modes" in found
    assert "PREDICT" not in found


def test_layers_in_another_order():
    """Their automatic names change places, and the shapes tell."""

    def logits_of(features, mode):
        sizes = (5, 6) if mode == TRAIN else (6, 5)
        parts = [tf.layers.dense(features, size) for size in sizes]
        return tf.layers.dense(tf.concat(parts, axis=1), CLASSES)

    found = failure(check_modes_agree, by_mode(logits_of), X, Y)
    assert "dense/kernel: of shape (4, 6) in EVAL, (4, 5) in TRAIN." in found
    assert "dense_1/bias: of shape (5,) in PREDICT, (6,) in TRAIN." in found


def test_noise_without_dropout():
    def logits_of(features, mode):
        return tf.layers.dense(features + tf.random_normal(tf.shape(features)), CLASSES)

    found = failure(check_modes_agree, by_mode(logits_of), X, Y)
    assert "tf.random_normal(tf.shape(features))" in found
