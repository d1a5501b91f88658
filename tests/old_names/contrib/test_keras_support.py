import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tpu_estimator_compat.old_names.contrib import keras_support

X = np.random.RandomState(0).randn(64, 4).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)


def model():
    layers = [tf_keras.Input([4]), tf_keras.layers.Dense(1, kernel_initializer="zeros")]
    return tf_keras.Sequential(layers)


def dataset():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)


@pytest.mark.parametrize("data", [{"x": X, "y": Y, "batch_size": 16}, {"x": dataset}])
def test_it_trains_what_the_model_would(data):
    """By arrays, and by a function that gives a dataset; the model itself has the weights."""
    made = model()
    strategy = keras_support.TPUDistributionStrategy(None)
    on_tpu = keras_support.keras_to_tpu_model(made, strategy=strategy)
    alone = model()
    for each, given in ((on_tpu, data), (alone, {"x": dataset()})):
        each.compile(tf_keras.optimizers.SGD(0.1), "mse")
        each.fit(**given, epochs=2, shuffle=False, verbose=0)
    assert isinstance(on_tpu, tf_keras.Model)
    assert on_tpu.sync_to_cpu() is made
    for found, expected in zip(made.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    loss = alone.evaluate(X, Y, verbose=0)
    assert on_tpu.evaluate(dataset, verbose=0) == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(on_tpu.predict(X, verbose=0), alone.predict(X, verbose=0), rtol=1e-5)


def test_what_is_refused(monkeypatch):
    with pytest.raises(TypeError, match="must be an instance of `tf"):
        keras_support.keras_to_tpu_model(model(), strategy="tpu")
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: ["a TPU"])
    with pytest.raises(NotImplementedError, match="does not place a model on a TPU"):
        keras_support.keras_to_tpu_model(model())
