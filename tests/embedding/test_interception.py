"""Gradients that are computed twice, or not at all."""

import pytest
import tensorflow.compat.v1 as tf

from .small_model import dict_spec, estimator_of, model_fn, of, sparse


def test_gradients_that_are_computed_twice(tmp_path, strategy):
    def twice(features, labels, mode, params):
        tf.gradients(tf.reduce_sum(features["a"]), tf.trainable_variables())
        return model_fn(features, labels, mode, params)

    estimator = estimator_of(tmp_path, dict_spec(), twice, strategy(1))
    with pytest.raises(RuntimeError, match=r"Duplicate gradients .* 'a'"):
        estimator.train(of(lambda: {"a": sparse([1])}), steps=1)


def test_activations_that_nobody_uses_are_told_of(tmp_path, strategy, caplog):
    def unused(features, labels, mode, params):
        features = {"a": tf.stop_gradient(features["a"])}
        return model_fn(features, labels, mode, params)

    estimator = estimator_of(tmp_path, dict_spec(), unused, strategy(1))
    with caplog.at_level("WARNING"):
        estimator.train(of(lambda: {"a": sparse([1])}), steps=1)
    assert "features ['a'] have undefined gradients" in caplog.text
