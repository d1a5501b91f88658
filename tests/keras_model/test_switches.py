"""Switches that Keras' loops refuse at their first call."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tpu_estimator_compat as tpu

from .fitting import dataset

CALLS = ["fit", "evaluate", "predict"]


@pytest.mark.parametrize("method", CALLS)
def test_eager_execution_is_off(estimator, method):
    model = estimator.keras_model()
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="needs eager execution"):
        getattr(model, method)(np.zeros([16, 2]))


@pytest.mark.parametrize("method", CALLS)
def test_another_backend(estimator, method, monkeypatch):
    model = estimator.keras_model()
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(RuntimeError, match=r"needs Keras on TensorFlow.* says 'jax'"):
        getattr(model, method)(np.zeros([16, 2]))


def test_an_error_of_a_layer_on_another_backend_says_so(tmp_path, monkeypatch):
    def model_fn(features, labels, mode):
        keras.layers.Dense(1, name="dense")("no tensor")

    def own_mistake(features, labels, mode):
        raise TypeError("own")

    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    for function, notes in (model_fn, 1), (own_mistake, 0):
        estimator = tpu.estimator.Estimator(function, str(tmp_path))
        with pytest.raises((TypeError, ValueError)) as caught:
            estimator.train(lambda: dataset(1), steps=1)
        said = [note for note in getattr(caught.value, "__notes__", []) if "KERAS_BACKEND" in note]
        assert len(said) == notes


@pytest.mark.filterwarnings("ignore:Even though the `tf.config.experimental_run_functions_eagerly")
def test_functions_that_run_eagerly(estimator):
    tf.config.run_functions_eagerly(True)
    try:
        estimator.train(lambda params: dataset(2), steps=4)
        assert estimator.evaluate(lambda params: dataset(2), steps=2)["global_step"] == 4
        assert estimator.keras_model().fit(dataset(2), verbose=0).history["loss"]
        assert tf.config.functions_run_eagerly()
    finally:
        tf.config.run_functions_eagerly(False)
