"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers, ops


class Gate(layers.Layer):
    """The scope gate_0, test_text.py."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.gate = layers.Dense(8)
        self.carry = layers.Dense(8)

    def call(self, x):
        gate = ops.tanh(self.gate(x))
        return x * gate + self.carry(x) * ops.power(1.0 - gate, 2.0)


class OtherGate(layers.Layer):
    """The scope gate_1, test_text.py."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.gate = layers.Dense(8)
        self.carry = layers.Dense(8)

    def call(self, x):
        gate = ops.sigmoid(self.gate(x))
        return x * gate + self.carry(x) * ops.power(1.0 - gate, 3.0)


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.gate_0 = Gate()
        self.gate_1 = OtherGate()
        self.table = self.add_weight(shape=(8, 3), trainable=False, name="table")
        self({"x": keras.Input((8,))})  # makes the weights

    def call(self, features, training=False):
        x = self.gate_0(features["x"])
        return {"out": ops.matmul(self.gate_1(x), self.table)}


def make_model():
    return Model()
