"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers, ops


class Block(layers.Layer):
    """The scope block_0, test_text.py."""

    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.conv = layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False)
        self.conv_norm = layers.BatchNormalization()
        self.wide = layers.Conv2D(2 * filters, 3, padding="same", use_bias=False)
        self.wide_norm = layers.BatchNormalization()

    def call(self, image):
        x = self.conv(image)
        x = self.wide(ops.relu(self.conv_norm(x)))
        return ops.relu(self.wide_norm(x))


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.blocks = [Block(filters) for filters in (8, 16)]
        self.global_average_pooling2d = layers.GlobalAveragePooling2D()
        self({"image": keras.Input((8, 8, 4))})  # makes the weights

    def call(self, features, training=False):
        x = features["image"]
        for block in self.blocks:
            x = block(x)
        return {"out": self.global_average_pooling2d(x)}


def make_model():
    return Model()
