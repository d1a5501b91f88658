"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers, ops


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.coder_0 = layers.Dense(8, use_bias=False)
        self.coder_0.build((None, 12))
        self.out_1 = layers.Dense(8, activation="tanh")
        self.coder_1 = layers.Dense(8, use_bias=False)
        self.coder_1.build((None, 12))
        self.out_2 = layers.Dense(8, activation="tanh")
        self({"x": keras.Input((8,))})  # makes the weights

    def call(self, features, training=False):
        code = ops.matmul(features["x"], ops.transpose(self.coder_0.kernel))
        x = self.coder_0(ops.relu(code))
        code = ops.matmul(self.out_1(x), ops.transpose(self.coder_1.kernel))
        x = self.coder_1(ops.relu(code))
        return {"x": self.out_2(x)}


def make_model():
    return Model()
