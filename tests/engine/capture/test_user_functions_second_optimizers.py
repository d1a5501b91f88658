"""Gradient tapes and the optimizers of TensorFlow 2 in a model_fn: replicas, Keras 3, `fit`.

`tests/conformance/scenarios/tapes.py` compares others with the original.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tpu_estimator_compat as tpu
import tpu_estimator_compat.v1 as tf1


def gradients_by(how, x, y):
    weights = [tf1.get_variable("w", [3, 1], initializer=tf1.ones_initializer())]
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(x, weights[0]) - y) ** 2)
    if how == "tape":
        return loss, tape.gradient(loss, weights), weights
    return loss, tf1.gradients(loss, weights), weights


def summed_model_fn(features, labels, mode, params):
    loss, gradients, weights = gradients_by(params["how"], features, labels)
    optimizer = tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.apply_gradients(
        zip(gradients, weights, strict=True), tf1.train.get_global_step()
    )
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.mark.parametrize("how", ["tape", "gradients"])
def test_on_two_replicas(how, tmp_path, strategy):
    x = np.arange(24, dtype=np.float32).reshape(8, 3) / 24
    y = np.ones([8, 1], np.float32)
    estimator = tpu.TPUEstimator(
        summed_model_fn,
        config=tpu.RunConfig(model_dir=tmp_path / how, train_distribute=strategy(2)),
        params={"how": how},
        use_tpu=True,
        train_batch_size=8,
    )
    estimator.train(lambda params: tf.data.Dataset.from_tensors((x, y)).repeat(), steps=1)
    ones = np.ones([3, 1], np.float32)
    halves = [part.T @ (part @ ones - 1) * 2 / 4 for part in np.split(x, 2)]
    np.testing.assert_allclose(
        estimator.get_variable_value("w"), ones - 0.1 * sum(halves), rtol=1e-5
    )


OPTIMIZERS = {
    "first": tf1.train.GradientDescentOptimizer,
    "second": tf1.keras.optimizers.SGD,
    "new": tf_keras.optimizers.SGD,
    "keras": keras.optimizers.SGD,
}


def with_strategy_model_fn(features, labels, mode, params):
    loss, gradients, weights = gradients_by("tape", features, labels)
    optimizer = OPTIMIZERS[params["optimizer"]](0.1)
    pairs = zip(gradients, weights, strict=True)
    applied = optimizer.apply_gradients(pairs, **params["arguments"])
    with tf.control_dependencies([loss if params["optimizer"] == "keras" else applied]):
        step = tf1.assign_add(tf1.train.get_global_step(), 1)
    return tpu.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


@pytest.mark.parametrize(
    ("optimizer", "arguments"),
    [
        ("first", {}),
        ("second", {}),
        ("second", {"experimental_aggregate_gradients": False}),
        ("new", {}),
        ("keras", {}),
    ],
)
def test_a_strategy_adds_gradients_up(optimizer, arguments, tmp_path, strategy):
    """The sum, or not where that is asked for: figures of the original, with two replicas.

    The new optimizers of tf_keras trained nothing there, and it had no Keras 3.
    """
    x, y = np.ones([4, 3], np.float32), np.ones([4, 1], np.float32)
    estimator = tpu.estimator.Estimator(
        with_strategy_model_fn,
        tmp_path,
        tpu.estimator.RunConfig(train_distribute=strategy(2)),
        params={"optimizer": optimizer, "arguments": arguments},
    )
    estimator.train(lambda: tf.data.Dataset.from_tensors((x, y)).repeat(), steps=1)
    expected = 0.6 if arguments else 0.2
    np.testing.assert_allclose(
        estimator.get_variable_value("w"), np.full([3, 1], expected), rtol=1e-5
    )


def keras_model_fn(features, labels, mode):
    """An optimizer of Keras 3, which returns no operation."""
    model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(features) - labels) ** 2)
    weights = model.trainable_variables
    gradients = tape.gradient(loss, weights)
    keras.optimizers.SGD(0.1).apply_gradients(zip(gradients, weights, strict=True))
    with tf.control_dependencies([loss]):
        step = tf1.assign_add(tf1.train.get_global_step(), 1)
    return tpu.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def test_an_optimizer_of_keras_3(tmp_path):
    x, y = np.ones([4, 3], np.float32), np.ones([4, 1], np.float32)
    estimator = tpu.estimator.Estimator(keras_model_fn, tmp_path)
    estimator.train(lambda: tf.data.Dataset.from_tensors((x, y)).repeat(2))
    kernel, bias = np.ones([3, 1]), np.zeros([1])
    for _ in range(2):
        gradient = 2 * (kernel.sum() + bias - 1)
        kernel, bias = kernel - 0.1 * gradient, bias - 0.1 * gradient
    np.testing.assert_allclose(
        estimator.get_variable_value("sequential/dense/kernel"), kernel, rtol=1e-5
    )


def test_fit_goes_on_from_an_object_based_checkpoint(tmp_path):
    """Its keys are not the names of variables, by which `fit` looks for newer values."""

    def model_fn(features, labels, mode):
        layer = tf_keras.layers.Dense(1, kernel_initializer="ones")
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((layer(features) - labels) ** 2)
        optimizer, step = tf_keras.optimizers.legacy.Adam(0.1), tf1.train.get_global_step()
        optimizer.iterations = step
        weights = layer.trainable_variables
        gradients = tape.gradient(loss, weights)
        train_op = optimizer.apply_gradients(zip(gradients, weights, strict=True))
        saved = tf.train.Checkpoint(layer=layer, optimizer=optimizer, step=step)
        scaffold = tf1.train.Scaffold(saver=saved)
        return tpu.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, scaffold=scaffold)

    x, y = np.ones([4, 3], np.float32), np.ones([4, 1], np.float32)

    def input_fn():
        return tf.data.Dataset.from_tensors((x, y)).repeat(2)

    estimator = tpu.estimator.Estimator(model_fn, tmp_path)
    model = estimator.keras_model(input_fn)
    estimator.train(input_fn)
    model.fit(input_fn(), verbose=0)
    key = "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE"
    fitted = estimator.get_variable_value(key)
    other = tpu.estimator.Estimator(model_fn, tmp_path / "other")
    other.train(lambda: input_fn().repeat(2))
    np.testing.assert_allclose(fitted, other.get_variable_value(key), rtol=1e-5)


def test_what_an_optimizer_of_keras_3_returns(tmp_path):
    def model_fn(features, labels, mode):
        loss, gradients, weights = gradients_by("tape", features, labels)
        applied = keras.optimizers.SGD(0.1).apply_gradients(zip(gradients, weights, strict=True))
        return tpu.estimator.EstimatorSpec(mode, loss=loss, train_op=applied)

    x, y = np.ones([4, 3], np.float32), np.ones([4, 1], np.float32)
    estimator = tpu.estimator.Estimator(model_fn, tmp_path)
    with pytest.raises(TypeError, match=r"train_op must be Operation or Tensor.*Keras 3"):
        estimator.train(lambda: tf.data.Dataset.from_tensors((x, y)))
