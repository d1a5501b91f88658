"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers, ops


class Block(layers.Layer):
    """Equal runs of layers, test_text.py."""

    def __init__(self, filters, strides, **kwargs):
        super().__init__(**kwargs)
        self.conv2d_1 = layers.Conv2D(filters, 3, padding="same", use_bias=False, strides=strides)
        self.batch_normalization_1 = layers.BatchNormalization()
        self.conv2d_2 = layers.Conv2D(filters, 3, padding="same", use_bias=False)
        self.batch_normalization_2 = layers.BatchNormalization()
        self.scale = self.add_weight(shape=(filters,), name="scale")
        self.conv2d_3 = layers.Conv2D(filters, 1, padding="same", use_bias=False, strides=strides)
        self.batch_normalization_3 = layers.BatchNormalization()

    def call(self, x):
        y = self.conv2d_1(x)
        y = self.conv2d_2(ops.relu(self.batch_normalization_1(y)))
        x = self.conv2d_3(x)
        return ops.relu(self.batch_normalization_2(y) * self.scale + self.batch_normalization_3(x))


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.conv2d = layers.Conv2D(8, 3, padding="same", use_bias=False)
        self.batch_normalization = layers.BatchNormalization()
        self.blocks = [
            Block(filters=filters, strides=strides)
            for filters, strides in ((8, 1), (16, 2), (16, 1))
        ]
        self.global_average_pooling2d = layers.GlobalAveragePooling2D()
        self({"image": keras.Input((8, 8, 4))})  # makes the weights

    def call(self, features, training=False):
        x = self.conv2d(features["image"])
        x = ops.relu(self.batch_normalization(x))
        for block in self.blocks:
            x = block(x)
        return {"out": self.global_average_pooling2d(x)}


def make_model():
    return Model()
