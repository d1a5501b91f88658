"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers


class Policy(layers.Layer):
    """The scope policy, test_text.py."""

    def __init__(self, units, out_units, **kwargs):
        super().__init__(**kwargs)
        self.hidden = layers.Dense(units, activation="relu")
        self.out = layers.Dense(out_units)

    def call(self, x):
        x = self.hidden(x)
        return self.out(x)


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.trunk = layers.Dense(16, activation="relu")
        self.policy = Policy(units=8, out_units=4)
        self.value = Policy(units=2, out_units=1)
        self({"x": keras.Input((8,))})  # makes the weights

    def call(self, features, training=False):
        x = self.trunk(features["x"])
        return {"policy": self.policy(x), "value": self.value(x)}


def make_model():
    return Model()
