"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers, ops


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.into = layers.Dense(8)
        self.scale = self.add_weight(shape=(8,), name="scale")
        self({"x": keras.Input((8,))})  # makes the weights

    def call(self, features, training=False):
        x = features["x"]
        y = self.into(x)
        x = ops.cond(
            ops.mean(x) > 0.0,
            lambda: y * self.scale,
            lambda: ops.exp(y - ops.max(y, axis=-1, keepdims=True)),
        )
        return {"out": x}


def make_model():
    return Model()
