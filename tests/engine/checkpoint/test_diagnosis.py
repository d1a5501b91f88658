"""Checkpoints that do not fit the model: variables and shapes are named."""

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import logits_of, make_estimator, train_input_fn

import tpu_estimator_compat as tpu

from .training import checkpoint_steps, gradient_descent


def test_another_shape_in_the_checkpoint_names_variable_and_both_shapes(tmp_path):
    make_estimator(tmp_path).train(train_input_fn, steps=1)
    before = checkpoint_steps(tmp_path)

    def wider(features, labels, mode, params):
        hidden = tf.get_variable("hidden", [4, 9])
        output = tf.get_variable("output", [9, 3])
        logits = tf.matmul(tf.matmul(features, hidden), output)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=gradient_descent(loss))

    with pytest.raises(ValueError, match=r"'hidden' has shape \(4, 9\).*\(4, 8\) in the check"):
        make_estimator(tmp_path, wider).train(train_input_fn, steps=1)
    assert checkpoint_steps(tmp_path) == before


def test_a_variable_missing_from_the_checkpoint_is_named(tmp_path):
    make_estimator(tmp_path).train(train_input_fn, steps=1)

    def more(features, labels, mode, params):
        extra = tf.get_variable("extra", [], initializer=tf.zeros_initializer())
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features)) + extra
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=gradient_descent(loss))

    with pytest.raises(tf.errors.NotFoundError, match="Variable 'extra' is not in the checkpoint"):
        make_estimator(tmp_path, more).train(train_input_fn, steps=1)


def test_unreadable_checkpoints_are_an_error_and_are_left_alone(tmp_path):
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, steps=1)
    for step in (0, 1):
        (tmp_path / f"model.ckpt-{step}.index").write_bytes(b"not an index")
    with pytest.raises(tf.errors.DataLossError, match=r"Could not read.*model\.ckpt-1"):
        estimator.train(train_input_fn, steps=1)
    for step in (0, 1):
        assert (tmp_path / f"model.ckpt-{step}.index").read_bytes() == b"not an index"
