"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.first = layers.Dense(8)
        self.second = layers.Dense(8)
        self.third = layers.Dense(8)
        self.fourth = layers.Dense(8)
        self({"x": keras.Input((8,))})  # makes the weights

    def call(self, features, training=False):
        first = self.first(features["x"])
        second = self.second(first)
        third = self.third(second)
        return {"out": self.fourth(third)}


def make_model():
    return Model()
