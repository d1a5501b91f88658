"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers, ops


class Block(layers.Layer):
    """The scope block_0, test_text.py."""

    def __init__(self, filters, strides, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = layers.Conv2D(filters, 3, padding="same", use_bias=False, strides=strides)
        self.conv1_norm = layers.BatchNormalization()
        self.conv2 = layers.Conv2D(filters, 3, padding="same", use_bias=False)
        self.conv2_norm = layers.BatchNormalization()
        self.shortcut = layers.Conv2D(filters, 1, padding="same", use_bias=False, strides=strides)
        self.shortcut_norm = layers.BatchNormalization()

    def call(self, image):
        x = self.conv1(image)
        x = self.conv2(ops.relu(self.conv1_norm(x)))
        y = self.shortcut(image)
        return ops.relu(self.conv2_norm(x) + self.shortcut_norm(y))


class OtherBlock(layers.Layer):
    """The scope block_1, test_text.py."""

    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = layers.Conv2D(filters, 3, padding="same", use_bias=False)
        self.conv1_norm = layers.BatchNormalization()
        self.conv2 = layers.Conv2D(filters, 3, padding="same", use_bias=False)
        self.conv2_norm = layers.BatchNormalization()

    def call(self, image):
        x = self.conv1(image)
        x = self.conv2(ops.relu(self.conv1_norm(x)))
        return ops.relu(self.conv2_norm(x) + image)


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.block_0 = Block(filters=8, strides=1)
        self.block_1 = OtherBlock(8)
        self.block_2 = Block(filters=16, strides=2)
        self.block_3 = OtherBlock(16)
        self.global_average_pooling2d = layers.GlobalAveragePooling2D()
        self.logits = layers.Dense(5)
        self({"image": keras.Input((8, 8, 4))})  # makes the weights

    def call(self, features, training=False):
        x = self.block_0(features["image"])
        x = self.block_1(x)
        x = self.block_2(x)
        x = self.block_3(x)
        x = self.global_average_pooling2d(x)
        return {"out": self.logits(x)}


def make_model():
    return Model()
