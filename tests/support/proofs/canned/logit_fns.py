"""Proofs of the functions that make logits."""

import tensorflow.compat.v1 as tf

from support.proofs import evaluate, proves
from support.proofs.canned.models import COLUMN, X


@proves("tf.estimator.experimental.linear_logit_fn_builder")
def builds_linear_logits(builder):
    logit_fn = builder(3, [COLUMN])
    assert evaluate(lambda: logit_fn({"x": tf.constant(X)})).tolist() == [[0.0] * 3] * 2


@proves("tf.estimator.experimental.dnn_logit_fn_builder")
def builds_deep_logits(builder):
    logit_fn = builder(3, [4], [COLUMN], tf.nn.relu, None, None, False)
    assert evaluate(lambda: logit_fn({"x": tf.constant(X)}, "train")).shape == (2, 3)


@proves("tf.estimator.experimental.call_logit_fn")
def calls_a_logit_fn(call_logit_fn):
    def logit_fn(features, mode):
        return features + len(mode)

    found = evaluate(lambda: call_logit_fn(logit_fn, tf.constant(1), "eval", {}, None))
    assert found == 5
