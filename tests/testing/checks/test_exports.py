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


SCORES = "no signature has it, but ['scores']."


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            lambda p: {**p, "logits": tf.nn.softmax(p["logits"])},
            {
                "'logits': from the SavedModel it differs by up to": 1,
                "8 example(s)": 1,
                "'class'": 0,
            },
        ),
        (
            lambda p: {"scores": p["logits"]},
            {f"predictions[{key!r}]: {SCORES}": 1 for key in ("logits", "class")},
        ),
        (
            lambda p: {**p, "logits": tf.reshape(p["logits"], [-1])},
            {"'logits': of shape (24,) from the SavedModel, (8, 3) from predict.": 1},
        ),
        (
            lambda p: {**p, "class": p["class"] + 1},
            {"'class': another value from the SavedModel than from predict.": 1},
        ),
    ],
    ids=["values", "names", "shape", "classes"],
)
def test_outputs_that_are_not_the_predictions(changed, said):
    make = tf.estimator.export.PredictOutput
    found = failure(check_exports, exporting({"serving_default": lambda p: make(changed(p))}), X, Y)
    assert {words: found.count(words) for words in said} == said


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
