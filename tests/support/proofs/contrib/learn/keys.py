"""Proofs of `tf.contrib.learn.ModeKeys`."""

import pytest

from support.proofs import proves
from tpu_estimator_compat import estimator as estimators


@proves("tf.contrib.learn.ModeKeys", "tf.contrib.learn.python.learn.estimators.model_fn:ModeKeys")
def has_modes(keys):
    assert (keys.TRAIN, keys.EVAL, keys.INFER) == ("train", "eval", "infer")
    assert keys.INFER == estimators.ModeKeys.PREDICT
    with pytest.raises(ValueError, match="Invalid mode"):
        keys.validate("other")
