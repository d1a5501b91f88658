"""Shapes of labels and logits are checked, when the model is built or in the step."""

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.v1 import estimator as heads

X = np.linspace(-1.0, 1.0, 8, dtype=np.float32)[:, None]


@pytest.mark.parametrize(
    ("labels", "logits", "words"),
    [
        (None, X, "You must provide a labels Tensor. Given: None."),
        (np.ones([8, 2]), X, "Mismatched label shape. Expected labels dimension=1.  Received 2"),
        (np.ones([7, 1]), X, "labels shape must be [D0, D1, ... DN, 1]"),
        (np.ones([8, 1]), np.ones([8, 2]), "logits_dimension], got (8, 2)"),
        (2 * np.ones([8, 1]), X, "Labels must be <= 2 - 1"),
    ],
)
def test_wrong_labels_are_named(labels, logits, words):
    with pytest.raises(ValueError) as error:
        heads.BinaryClassHead().loss(labels, logits, {})
    assert words in str(error.value)


def test_shapes_that_only_the_step_knows_are_checked_there():
    head = heads.RegressionHead()

    @tf.function(
        input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([None, None])], autograph=False
    )
    def loss(labels, logits):
        return head.loss(labels, logits, {})

    assert float(loss(X, X)) == 0.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels shape must be"):
        loss(X[:5], X)
    with pytest.raises(tf.errors.InvalidArgumentError, match="logits shape must be"):
        loss(np.ones([8, 2], np.float32), np.ones([8, 2], np.float32))
