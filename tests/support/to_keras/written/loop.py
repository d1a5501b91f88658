"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.scale = self.add_weight(shape=(8,), name="scale")
        self({"x": keras.Input((8,))})  # makes the weights

    def call(self, features, training=False):
        x = features["x"]

        def condition(x, y, z):
            return ops.logical_and(x < 5, z > 0.01)

        def body(x, y, z):
            new = ops.tanh(y * self.scale) + 0.5 * y
            return x + 1, new, ops.max(ops.absolute(new - y))

        y, z, _ = ops.while_loop(condition, body, (0, x, 1.0))
        x = ops.full((ops.shape(x)[0],), y, dtype="int32")
        return {"x": z, "rounds": x}


def make_model():
    return Model()
