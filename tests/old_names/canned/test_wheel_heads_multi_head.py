"""A head of several."""

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.v1 import estimator as heads

X = np.linspace(-1.0, 1.0, 8, dtype=np.float32)[:, None]

ANSWERS = np.array([0, 1, 1, 0, 1, 0, 1, 1], np.int64)


def test_several_heads_are_a_weighted_sum_of_them():
    first, second = heads.BinaryClassHead(name="a"), heads.RegressionHead(name="b")
    both = heads.MultiHead([first, second], [1.0, 0.5])
    logits = np.concatenate([2 * X, X + 1], axis=1)
    labels = {"a": ANSWERS, "b": X}
    regularization = [tf.constant(0.25)]
    loss = both.loss(labels, logits, {}, regularization_losses=regularization)
    own = first.loss(ANSWERS, logits[:, :1], {}), second.loss(X, logits[:, 1:], {})
    apart = own[0] + 0.5 * own[1]
    np.testing.assert_allclose(loss, apart + 0.25, rtol=1e-6)
    assert both.name == "a_b"
    assert both.logits_dimension == 2
