"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers, ops


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.table = layers.Embedding(20, 8)
        self({"ids": keras.Input((6,), dtype="int32")})  # makes the weights

    def call(self, features, training=False):
        ids = features["ids"]
        table = self.table(ids)
        mean = ops.matmul(ops.one_hot(ids[:, 0], 20), self.table.embeddings)
        x = ops.concatenate([mean, ops.sum(table, axis=1)], axis=1)
        return {"out": x}


def make_model():
    return Model()
