"""Exports that say something else than `predict`, which `check_exports` must name."""

import numpy as np
import pytest

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.testing import check_exports

from ..models import CLASSES, PREDICT, X, Y, classifier, failure, gradient_descent, predictions_of
from ..sound_models import SOUND


@pytest.mark.parametrize("name", ["dense", "embedding", "lstm", "batch_norm", "dict", "float64"])
def test_sound(name):
    check_exports(*SOUND[name])


def exporting(outputs):
    """A classifier with export_outputs: a dict of functions of its predictions."""

    def of_predictions(predictions):
        return {name: make(predictions) for name, make in outputs.items()}

    def model_fn(features, labels, mode, params):
        spec = classifier()(features, labels, mode, params)
        if mode != PREDICT:
            return spec
        return spec._replace(export_outputs=of_predictions(spec.predictions))

    return model_fn


def test_sound_export_outputs():
    make = tf.estimator.export.PredictOutput
    check_exports(exporting({"serving_default": make, "other": lambda p: make(p["class"])}), X, Y)


def test_other_values():
    def other(predictions):
        return tf.estimator.export.PredictOutput(
            {"logits": tf.nn.softmax(predictions["logits"]), "class": predictions["class"]}
        )

    found = failure(check_exports, exporting({"serving_default": other}), X, Y)
    assert "'logits': from the SavedModel it differs by up to" in found
    assert "Given 8 example(s)." in found
    assert "'class'" not in found


def test_prediction_that_no_signature_has():
    def part(predictions):
        return tf.estimator.export.PredictOutput({"scores": predictions["logits"]})

    found = failure(check_exports, exporting({"serving_default": part}), X, Y)
    assert "predictions['logits']: no signature has it, but ['scores']." in found
    assert "predictions['class']" in found


def test_static_batch_size():
    def logits_of(features, training):
        return tf.layers.dense(tf.reshape(features, [8, 4]), CLASSES)

    found = failure(check_exports, classifier(logits_of), X, Y)
    assert "Signature 'serving_default': 'logits' is of 8 examples, always." in found
    assert "take sizes from tf.shape(features) in PREDICT" in found


def test_size_that_only_running_shows():
    def logits_of(features, training):
        columns = tf.slice(features, [0, 0], tf.placeholder_with_default([8, 4], [2]))
        return tf.layers.dense(tf.ensure_shape(columns, [None, 4]), CLASSES)

    found = failure(check_exports, classifier(logits_of), X, Y, use_tpu=False)
    assert "Signature 'serving_default' fails on 1 example(s)" in found
    assert "on 8 example(s)" not in found


def test_batch_size_of_params():
    def model_fn(features, labels, mode, params):
        def logits_of(features, training):
            return tf.layers.dense(tf.reshape(features, [params["batch_size"], 4]), CLASSES)

        return classifier(logits_of)(features, labels, mode, params)

    found = failure(check_exports, model_fn, X, Y)
    assert "model_fn asks for params['batch_size'], and an export gives it none." in found
    assert "take sizes from tf.shape(features) in PREDICT" in found


def test_other_shape():
    def flat(predictions):
        logits = tf.reshape(predictions["logits"], [-1])
        return tf.estimator.export.PredictOutput({**predictions, "logits": logits})

    found = failure(check_exports, exporting({"serving_default": flat}), X, Y)
    assert "'logits': of shape (24,) from the SavedModel, (8, 3) from predict." in found


def test_other_classes():
    def next_one(predictions):
        return tf.estimator.export.PredictOutput({**predictions, "class": predictions["class"] + 1})

    found = failure(check_exports, exporting({"serving_default": next_one}), X, Y)
    assert "'class': another value from the SavedModel than from predict." in found


def sole(features, labels, mode):
    logits = tf.layers.dense(features, CLASSES)
    if mode == PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=tf.nn.softmax(logits))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = gradient_descent().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def test_sole_tensor():
    check_exports(sole, X, Y, use_tpu=False)


def test_text():
    """Bytes are compared as they are."""

    def predictions_of_text(logits):
        return {"word": tf.gather(tf.constant(["a", "b", "c"]), tf.argmax(logits, axis=-1))}

    check_exports(classifier(predictions_of=predictions_of_text), X, Y, use_tpu=False)


def test_tuple_features_are_refused():
    with pytest.raises(ValueError, match="features must be an array or a dict of arrays"):
        check_exports(classifier(predictions_of=predictions_of), (X, np.ones(8)), Y)
