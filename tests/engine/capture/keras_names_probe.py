"""Names that variables of Keras layers get in a TF1 graph; runs here and in the original.

As a script it prints them by model, as JSON.
"""

import json

import tensorflow as tf

layers = tf.keras.layers
v1 = tf.compat.v1


class Block(layers.Layer):
    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.first, self.second = layers.Dense(4), layers.Dense(4)

    def call(self, x):
        return self.second(self.first(x))


class Scaled(layers.Layer):
    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.inner = layers.Dense(4)

    def build(self, shape):
        self.scale = self.add_weight(name="scale", shape=[4])
        super().build(shape)

    def call(self, x):
        return self.inner(x) * self.scale


class Stack(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [Block(name=f"block_{i}") for i in range(2)]
        self.top = layers.Dense(2)

    def call(self, x):
        for block in self.blocks:
            x = block(x)
        return self.top(x)


def several(x):
    for _ in range(3):
        x = layers.Dense(4)(x)
    return x


def normalized(x):
    for _ in range(2):
        x = layers.BatchNormalization()(layers.Dense(4)(x), training=True)
    return x


def scoped(x):
    with v1.variable_scope("outer"):
        x = several(x)
    with v1.name_scope("other"):
        return Block()(x)


def shared(x):
    twice = layers.Dense(4)
    return layers.Dense(4)(twice(twice(x)))


def sequential(x):
    return layers.Dense(3)(tf.keras.Sequential([layers.Dense(4), layers.Dense(4)])(x))


def functional(x):
    inputs = tf.keras.Input([4])
    model = tf.keras.Model(inputs, layers.Dense(2)(layers.Dense(3)(inputs)))
    return layers.Dense(1)(model(x))


def blocks(x):
    return Block()(Block()(x))


def scaled(x):
    return Scaled()(Scaled()(x))


def stack(x):
    return Stack()(x)


def named(x):
    return layers.Dense(4)(tf.nn.relu(layers.Dense(4, name="mine")(x)))


def embedded(x):
    ids = tf.cast(x, tf.int32)
    return layers.Dense(2)(layers.LayerNormalization()(layers.Embedding(5, 4)(ids)[:, 0]))


def attention(x):
    x = tf.reshape(x, [-1, 2, 2])
    return layers.Dense(2)(layers.MultiHeadAttention(2, 2)(x, x))


def recurrent(x):
    x = layers.LSTM(3, dropout=0.1)(tf.reshape(x, [-1, 2, 2]), training=True)
    return layers.Dense(2)(layers.Dropout(0.5)(x, training=True))


MODELS = [several, normalized, scoped, shared, sequential, functional, blocks, scaled, stack]
MODELS += [named, embedded, attention, recurrent]


def names_of(model, new_graph=lambda: tf.Graph().as_default()):
    with new_graph():
        model(v1.placeholder(tf.float32, [3, 4]))
        names = [variable.op.name for variable in v1.global_variables()]
        return [name for name in names if name != "global_step"]


if __name__ == "__main__":
    print(json.dumps({model.__name__: names_of(model) for model in MODELS}))
