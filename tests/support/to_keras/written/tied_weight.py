"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers, ops


class Mixer(layers.Layer):
    """The scope encoder/mixer, test_text.py."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.mixer_in = layers.Dense(16, activation="relu")
        self.out = layers.Dense(8)

    def call(self, x):
        y = self.mixer_in(x)
        return x + self.out(y)


class Head(layers.Layer):
    """The scope head, test_text.py."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.transform = layers.Dense(8, activation="tanh")
        self.bias = self.add_weight(shape=(20,), name="bias")

    def call(self, x, table):
        x = ops.matmul(self.transform(x)[:, 0], ops.transpose(table))
        return x + self.bias


class Encoder(layers.Layer):
    """The scope encoder, test_text.py."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.table = layers.Embedding(20, 8)
        self.mixer = Mixer()

    def call(self, ids):
        return self.mixer(self.table(ids) * 2.828427)


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.encoder = Encoder()
        self.head = Head()
        self({"ids": keras.Input((6,), dtype="int32")})  # makes the weights

    def call(self, features, training=False):
        x = self.encoder(features["ids"])
        return {"logits": self.head(x, self.encoder.table.embeddings)}


def make_model():
    return Model()
