"""Proofs of `tf.contrib.learn.ModelFnOps`."""

import pytest
import tensorflow.compat.v1 as tf

from support.proofs import graph, proves
from tpu_estimator_compat import estimator as estimators
from tpu_estimator_compat.old_names.contrib import learn

LEARN = "tf.contrib.learn"
INSIDE = f"{LEARN}.python.learn"


@proves(f"{LEARN}.ModeKeys")
def has_modes(keys):
    assert (keys.TRAIN, keys.EVAL, keys.INFER) == ("train", "eval", "infer")
    assert keys.INFER == estimators.ModeKeys.PREDICT
    with pytest.raises(ValueError, match="Invalid mode"):
        keys.validate("other")


@proves(f"{LEARN}.ModelFnOps")
def has_ops(ops):
    with graph():
        made = ops(mode="infer", predictions={"y": tf.constant([1.0])})
        assert made.estimator_spec().mode == estimators.ModeKeys.PREDICT
        with pytest.raises(ValueError, match=r"Missing train_op\."):
            ops("train", loss=tf.constant(1.0))


@proves(f"{INSIDE}.estimators.model_fn")
def is_the_module_of_ops(module):
    assert module.ModelFnOps is learn.ModelFnOps
    assert module.ModeKeys.TRAIN == "train"
