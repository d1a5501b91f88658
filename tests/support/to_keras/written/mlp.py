"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers, ops


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.hidden = layers.Dense(16, activation="relu")
        self.logits = layers.Dense(3)
        self({"x": keras.Input((8,))})  # makes the weights

    def call(self, features, training=False):
        x = self.hidden(features["x"])
        logits = self.logits(x)
        return {"class": ops.argmax(logits, axis=1), "probabilities": ops.softmax(logits)}


def make_model():
    return Model()
