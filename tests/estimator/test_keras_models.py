import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tpu_estimator_compat.v1 as tf1
from tpu_estimator_compat.estimator.keras_models import model_to_estimator


def compiled(model=None):
    model = model or tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(4,), name="dense")])
    model.compile("sgd", loss="mse")
    return model


def input_fn():
    x = np.ones([4, 4], np.float32)
    return tf.data.Dataset.from_tensors((x, x[:, :1]))


@pytest.mark.parametrize("checkpoint_format", ["saver", "checkpoint"])
def test_it_starts_from_the_models_weights_and_goes_on(tmp_path, checkpoint_format):
    model, x = compiled(), np.ones([4, 4])
    expected = model.predict(x)  # later, Keras 2 refuses to use it again
    made = tf1.keras.estimator.model_to_estimator(
        model, model_dir=str(tmp_path), checkpoint_format=checkpoint_format
    )
    predicted = [p["dense"] for p in made.predict(input_fn)]
    np.testing.assert_allclose(predicted, expected, rtol=1e-5)
    for _ in range(2):
        made.train(input_fn)
    assert made.evaluate(input_fn)["global_step"] == 2
    if checkpoint_format == "checkpoint":
        kernel, bias = (
            made.get_variable_value(f"layer_with_weights-0/{name}/.ATTRIBUTES/VARIABLE_VALUE")
            for name in ("kernel", "bias")
        )
        after = [p["dense"] for p in made.predict(input_fn)]
        np.testing.assert_allclose(after, x @ kernel + bias, rtol=1e-5)


def subclassed():
    class Mine(tf_keras.Model):
        def get_config(self):
            raise NotImplementedError

    return compiled(Mine())


def with_config():
    class Mine(tf_keras.Model):
        def get_config(self):
            return {}

    return compiled(Mine())


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (
            lambda: {"keras_model": compiled(), "keras_model_path": "m.h5"},
            ValueError,
            "either `keras_model` or `keras_model_path`, but not both",
        ),
        (
            lambda: {"keras_model": with_config()},
            ValueError,
            "Object-based checkpoints are currently not supported with subclassed models",
        ),
        (
            lambda: {"keras_model": subclassed(), "checkpoint_format": "saver"},
            ValueError,
            "must implement `Model.get_config` and `Model.from_config`",
        ),
        (
            lambda: {"keras_model_path": "gs://bucket/model.h5"},
            ValueError,
            "Copy the file to this machine",
        ),
        (
            lambda: {"keras_model": keras.Sequential([keras.layers.Dense(1)])},
            TypeError,
            "takes models of Keras 2; Sequential is one of Keras 3",
        ),
    ],
    ids=["both", "objects", "config", "cloud", "keras3"],
)
def test_what_cannot_become_an_estimator(arguments, error, match, tmp_path):
    with pytest.raises(error) as raised:
        model_to_estimator(model_dir=str(tmp_path), **arguments())
    assert match in str(raised.value)


def test_two_replicas_train_as_one(tmp_path, strategy):
    """Each on a batch of its own, which is the same here; the loss is a mean over all of them."""
    kernels, losses = [], []
    for replicas in (None, strategy(2)):
        config = tf1.estimator.RunConfig(train_distribute=replicas, eval_distribute=replicas)
        model, folder = compiled(), str(tmp_path / str(len(losses)))
        model.set_weights([np.full([4, 1], 0.5), np.zeros([1])])
        made = model_to_estimator(model, model_dir=folder, config=config, checkpoint_format="saver")
        made.train(lambda: input_fn().repeat(), steps=2)
        kernels.append(made.get_variable_value("dense/kernel"))
        losses.append(made.evaluate(lambda: input_fn().repeat(2), steps=1)["loss"])
    np.testing.assert_allclose(*kernels, rtol=1e-5)
    np.testing.assert_allclose(*losses, rtol=1e-5)
