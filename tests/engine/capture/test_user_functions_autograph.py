"""AutoGraph, which rewrites Python functions, is given none of this package."""

import pytest
import tensorflow as tf
from tensorflow.python.autograph.impl import api

import tpu_estimator_compat as tpu


@pytest.fixture
def converted(monkeypatch):
    """The names of modules whose functions AutoGraph rewrites."""
    modules = []
    convert = api._convert_actual

    def noting(entity, program_ctx):
        modules.append(entity.__module__)
        return convert(entity, program_ctx)

    monkeypatch.setattr(api, "_convert_actual", noting)
    return modules


def model_fn(features, labels, mode, params):
    weight = tf.compat.v1.get_variable("weight", initializer=0.0)
    predictions = {"y": features * weight}
    if mode == tpu.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)
    loss = tf.reduce_mean((features * weight - labels) ** 2)
    step = tf.compat.v1.train.get_global_step()
    train_op = tf.compat.v1.train.GradientDescentOptimizer(0.01).minimize(loss, step)
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def tensors(params):
    return tf.random.uniform([2]), tf.ones([2])


def user_function(x, y):
    if tf.reduce_sum(x) > 0:
        x = x + 1.0
    return x, y


def dataset(params):
    data = tf.data.Dataset.from_tensor_slices(([1.0] * 4, [2.0] * 4)).map(user_function)
    return data.repeat(2).batch(2, drop_remainder=True)


@pytest.mark.parametrize("use_tpu", [False, True])
@pytest.mark.parametrize("input_fn", [tensors, dataset])
def test_nothing_of_ours_is_converted(tmp_path, strategy, converted, input_fn, use_tpu):
    estimator = tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(model_dir=str(tmp_path), train_distribute=strategy(1)),
        params={},
        use_tpu=use_tpu,
        train_batch_size=2,
        eval_batch_size=2,
        predict_batch_size=2,
    )
    estimator.train(input_fn, steps=2)
    estimator.evaluate(input_fn, steps=2)
    list(estimator.predict(dataset))
    assert __name__ in converted  # the user's own is
    assert not [name for name in converted if name.startswith("tpu_estimator_compat")]
