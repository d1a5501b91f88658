"""A hand-written Keras model with the layers of the legacy model in these tests."""

import keras


def make_model():
    """Features [4] to logits [3]; its variables have other names than the TF1 ones."""
    inputs = keras.Input([4])
    x = keras.layers.Dense(8, activation="relu", use_bias=False, name="first")(inputs)
    x = keras.layers.Dropout(0.5)(x)
    return keras.Model(inputs, keras.layers.Dense(3, use_bias=False, name="last")(x))


def make_named_model():
    """The same, with a dict of inputs and outputs."""
    inputs = keras.Input([4], name="input")
    return keras.Model({"input": inputs}, {"logits": make_model()(inputs)})


def make_unbuilt_model():
    """A model that has seen nothing yet."""
    return keras.Sequential([keras.layers.Dense(3)])
