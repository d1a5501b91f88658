import numpy as np
import pytest
import tensorflow as tf2
import tf_keras

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.old_names.contrib import keras_support

from .small_net import BATCH, STEPS, input_fn, make

HParams = tf.contrib.training.HParams


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate", "Malformed hyperparameter value: rate"),
        ("rate=high", "Could not parse hparam 'rate' of type 'float' with value 'high'"),
        ("rate=1,rate=2", "Multiple assignments to variable 'rate'"),
        ("units[0]=1,units[0]=2", r"Multiple assignments to variable 'units\[0\]'"),
        ("units=[1],units[0]=2", "Multiple assignments"),
        ("units[0]=[1]", "Assignment of a list to a list index"),
        ("units=1", "Must pass a list for multi-valued parameter: units"),
        ("rate=[1,2]", "Must not pass a list for single-valued parameter: rate"),
        ("speed=1", "Unknown hyperparameter type for speed"),
        ("on=maybe", "Could not parse hparam 'on' of type 'bool'"),
    ],
)
def test_text_of_hyperparameters(text, message):
    with pytest.raises(ValueError, match=message):
        HParams(rate=0.1, units=[1, 2], on=True).parse(text)


def test_types_of_hyperparameters():
    hparams = HParams(rate=0.1, count=1, on=True, name="a")
    for name, value in (("count", 1.5), ("on", 1), ("name", 3), ("rate", "1"), ("rate", True)):
        with pytest.raises(ValueError, match=f"Could not cast hparam '{name}'"):
            hparams.set_hparam(name, value)
    with pytest.raises(KeyError):
        hparams.set_hparam("missing", 1)
    with pytest.raises(ValueError, match="reserved: rate"):
        hparams.add_hparam("rate", 1)
    with pytest.raises(ValueError, match="cannot be empty"):
        hparams.add_hparam("more", [])
    with pytest.raises(ValueError, match="incompatible with default"):
        hparams.get("rate", [1])
    with pytest.raises(NotImplementedError, match="to_json"):
        HParams(hparam_def=object())


def test_a_crossed_column_of_a_checkpoint_is_refused():
    with pytest.raises(ValueError, match=r"init_from_checkpoint"):
        tf.contrib.layers.crossed_column(["a", "b"], 3, ckpt_to_load_from="path")


def test_a_batch_norm_of_slim_trains_and_evaluates(tmp_path):
    slim = tf.contrib.slim

    def model_fn(features, labels, mode):
        with slim.arg_scope([slim.batch_norm], decay=0.5, scale=True, is_training=mode == "train"):
            net = slim.fully_connected(features["x"], 1, None, normalizer_fn=slim.batch_norm)
        loss = tf.losses.mean_squared_error(labels, net)
        train_op = slim.learning.create_train_op(loss, tf.train.AdamOptimizer(0.1))
        predictions = {"mean": tf.reduce_mean(net)}
        return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op)

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    batches = lambda: input_fn({"batch_size": BATCH})  # noqa: E731
    estimator.train(batches, steps=100)
    assert estimator.get_variable_value("global_step") == 100
    moved = estimator.get_variable_value("fully_connected/BatchNorm/moving_mean")
    assert np.abs(moved).max() > 1e-3
    assert estimator.evaluate(batches, steps=4)["loss"] < 0.2


@pytest.mark.parametrize("replicas", [1, 2])
def test_summaries_in_host_call(replicas, tmp_path, strategy):
    optimizers = {"net": lambda: tf.contrib.opt.AdamWOptimizer(0.01, 0.05)}
    make(tmp_path, optimizers, strategy(replicas), True).train(input_fn, steps=STEPS)
    [path] = (tmp_path / "host").glob("*tfevents*")
    steps = [e.step for e in tf.train.summary_iterator(str(path)) if e.summary.value]
    assert len(steps) == STEPS
    assert sorted(set(steps)) == steps


X = np.random.RandomState(0).randn(64, 4).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)


def model():
    layers = [tf_keras.Input([4]), tf_keras.layers.Dense(1, kernel_initializer="zeros")]
    return tf_keras.Sequential(layers)


def dataset():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)


@pytest.mark.parametrize("data", [{"x": X, "y": Y, "batch_size": 16}, {"x": dataset}])
def test_it_trains_what_the_model_would(data):
    """By arrays, and by a function that gives a dataset; the model itself has the weights."""
    made = model()
    strategy = keras_support.TPUDistributionStrategy(None)
    on_tpu = keras_support.keras_to_tpu_model(made, strategy=strategy)
    alone = model()
    for each, given in ((on_tpu, data), (alone, {"x": dataset()})):
        each.compile(tf_keras.optimizers.SGD(0.1), "mse")
        each.fit(**given, epochs=2, shuffle=False, verbose=0)
    assert isinstance(on_tpu, tf_keras.Model)
    assert on_tpu.sync_to_cpu() is made
    for found, expected in zip(made.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    loss = alone.evaluate(X, Y, verbose=0)
    assert on_tpu.evaluate(dataset, verbose=0) == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(on_tpu.predict(X, verbose=0), alone.predict(X, verbose=0), rtol=1e-5)


def test_what_is_refused(monkeypatch):
    with pytest.raises(TypeError, match="must be an instance of `tf"):
        keras_support.keras_to_tpu_model(model(), strategy="tpu")
    monkeypatch.setattr(tf2.config, "list_logical_devices", lambda kind: ["a TPU"])
    with pytest.raises(NotImplementedError, match="does not place a model on a TPU"):
        keras_support.keras_to_tpu_model(model())
