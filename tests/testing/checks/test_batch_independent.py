"""Predictions that look at other examples, and metrics that count padding."""

import numpy as np
import pytest

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.testing import check_batch_independent

from ..models import CLASSES, PREDICT, X, Y, classifier, failure, logits_of
from ..sound_models import SOUND

SOUND_ONES = ["dense", "embedding", "lstm", "batch_norm", "batch_norm_images", "dict", "tuple"]


@pytest.mark.parametrize("name", [*SOUND_ONES, "while_loop"])
def test_sound(name):
    check_batch_independent(*SOUND[name])


def test_softmax_over_the_batch():
    def predictions_of(logits):
        return {"logits": logits, "shares": tf.nn.softmax(logits, axis=0)}

    found = failure(check_batch_independent, classifier(predictions_of=predictions_of), X, Y)
    assert "predictions['shares']: of example 0 it is" in found
    assert "predictions['logits']" not in found
    assert '"shares": tf.nn.softmax(logits, axis=0)' in found
    assert "reduce over other axes than 0" in found


def test_mean_of_the_batch_is_subtracted():
    def centred(features, training):
        return logits_of(features - tf.reduce_mean(features, axis=0), training)

    found = failure(check_batch_independent, classifier(centred), X, Y)
    assert "predictions['logits']: of example 0" in found
    assert "features - tf.reduce_mean(features, axis=0)" in found


@pytest.mark.parametrize("fused", [True, False])
def test_batch_normalization_in_training_mode(fused):
    def normalized(features, training):
        hidden = tf.reshape(tf.layers.dense(features, 6), [-1, 1, 1, 6])
        hidden = tf.layers.batch_normalization(hidden, training=True, fused=fused)
        return tf.layers.dense(tf.layers.flatten(hidden), CLASSES)

    found = failure(check_batch_independent, classifier(normalized), X, Y)
    assert "hidden, training=True, fused=fused)" in found
    assert "use its moving averages in PREDICT" in found


def test_rank_within_the_batch():
    """Neither a reduction nor a normalization: the check still finds it, without a line."""

    def predictions_of(logits):
        return {"rank": tf.argsort(tf.argsort(logits[:, 0]))}

    found = failure(check_batch_independent, classifier(predictions_of=predictions_of), X, Y)
    assert "predictions['rank']: of example" in found


def test_neighbour_in_the_batch():
    def shifted(features, training):
        return logits_of(features + tf.roll(features, 1, axis=0), training)

    found = failure(check_batch_independent, classifier(shifted), X, Y)
    assert "predictions['logits']: of example" in found


def of_padded(weigh):
    """The model_fn of a classifier whose inputs mark padding, as BERT's do."""

    def model_fn(features, labels, mode, params):
        def metric_fn(labels, logits, is_real):
            found = tf.argmax(logits, axis=-1)
            weights = is_real if weigh else None
            return {"accuracy": tf.metrics.accuracy(labels, found, weights=weights)}

        spec = classifier()(features["x"], labels, mode, params)
        if mode == PREDICT or spec.eval_metrics is None:
            return spec
        metrics = (metric_fn, [*spec.eval_metrics[1], features["is_real_example"]])
        return spec._replace(eval_metrics=metrics)

    return model_fn


PADDED = {"x": X, "is_real_example": np.ones(8, np.float32)}
MIXED = np.array([0, 1, 2, 0, 2, 1, 1, 0], np.int32)


def test_metric_that_weighs_padding_with_zero():
    check_batch_independent(of_padded(True), PADDED, MIXED, padding={"is_real_example": 0})


def test_metric_that_counts_padding():
    found = failure(
        check_batch_independent, of_padded(False), PADDED, MIXED, padding={"is_real_example": 0}
    )
    assert "accuracy: " in found
    assert "of 8 examples" in found
    assert "with padding" in found
    assert "weights that are zero there, from ['is_real_example']" in found


@pytest.mark.parametrize(
    ("features", "given", "said"),
    [
        (X[:1], {}, "two examples at least that differ from each other. Got 1, no more"),
        (np.ones_like(X), {}, "Got 8, equal"),
        (X, {"padding": {"real": 0}}, r"padding names \['real'\], but features are no dict"),
    ],
)
def test_bad_arguments(features, given, said):
    with pytest.raises(ValueError, match=said):
        check_batch_independent(classifier(), features, Y[: len(features)], **given)
