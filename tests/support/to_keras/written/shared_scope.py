"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers, ops


class Steps(layers.Layer):
    """The scope steps, test_text.py."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.into = layers.Dense(12, activation="tanh")
        self.out = layers.Dense(8)

    def call(self, x):
        y = self.into(x)
        return x + self.out(y)


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.steps = Steps()
        self({"x": keras.Input((8,))})  # makes the weights

    def call(self, features, training=False):
        x = features["x"]
        y = x
        for _ in range(2):
            y = self.steps(y)
        x = y - x
        x = ops.sqrt(ops.sum(x * x, axis=-1, keepdims=True))
        return {"twice": y, "norm": ops.squeeze(x, axis=-1)}


def make_model():
    return Model()
