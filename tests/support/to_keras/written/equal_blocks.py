"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers


class Layer(layers.Layer):
    """The scope layer_0, test_text.py."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.inner = layers.Dense(12, activation="relu")
        self.outer = layers.Dense(8)

    def call(self, x):
        y = self.inner(x)
        return x + self.outer(y)


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.model_layers = [Layer() for _ in range(2)]
        self({"x": keras.Input((8,))})  # makes the weights

    def call(self, features, training=False):
        x = features["x"]
        for layer in self.model_layers:
            x = layer(x)
        return {"out": x}


def make_model():
    return Model()
