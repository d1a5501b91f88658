"""Steps that no TPU runs: `check_fits_tpu` names their lines without any."""

import numpy as np
import pytest

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.testing import check_fits_tpu

from ..models import CLASSES, EVAL, PREDICT, X, Y, classifier, failure, logits_of
from ..sound_models import SOUND


@pytest.mark.parametrize(
    "name", ["dense", "embedding", "lstm", "batch_norm", "slim_batch_norm", "host_call", "bfloat16"]
)
def test_sound(name):
    check_fits_tpu(*SOUND[name])


@pytest.mark.parametrize("mode", [EVAL, PREDICT])
def test_sound_in_other_modes(mode):
    check_fits_tpu(*SOUND["dense"], mode=mode)


def test_text():
    def of_text(features, training):
        numbers = tf.string_to_number(tf.as_string(features))
        return logits_of(numbers, training)

    found = failure(check_fits_tpu, classifier(of_text), X, Y)
    assert "check_fits_tpu found that the step does not run on v5e:2x2" in found
    assert "tf.string_to_number(tf.as_string(features))" in found


def test_host_only_operation():
    def by_python(features, training):
        found = tf.py_func(np.tanh, [features], tf.float32)
        found.set_shape(features.shape)
        return logits_of(found, training)

    found = failure(check_fits_tpu, classifier(by_python), X, Y)
    assert "tf.py_func(np.tanh, [features], tf.float32)" in found


def test_batch_that_the_replicas_cannot_share():
    found = failure(check_fits_tpu, *SOUND["dense"], topology="v5e:8x8")
    assert "train batch size 8 must be divisible by number of replicas 64" in found


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topology": "v99:1"}, "v99"),
        ({"depth": "deep"}, "deep"),
        ({"mode": "predict"}, "mode must be one of .*'predict'"),
    ],
)
def test_bad_arguments(given, said):
    with pytest.raises(ValueError, match=said):
        check_fits_tpu(classifier(lambda x, _: tf.layers.dense(x, CLASSES)), X, Y, **given)
