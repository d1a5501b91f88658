import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator as estimators
from tpu_estimator_compat.old_names.contrib.estimator import TowerOptimizer, replicate_model_fn

X = np.random.RandomState(0).randn(8, 3).astype(np.float32)
Y = X.sum(1, keepdims=True)
TWO = ["/cpu:0", "/cpu:0"]


def model_fn(features, labels, mode, params):
    hidden = tf.get_variable("hidden", [3, 2], initializer=tf.constant_initializer(0.3))
    out = tf.get_variable("out", [2, 1], initializer=tf.constant_initializer(0.5))
    y = tf.matmul(tf.tanh(tf.matmul(features["x"], hidden)), out)
    if mode == estimators.ModeKeys.PREDICT:
        return estimators.EstimatorSpec(mode, {"y": y})
    loss = tf.losses.mean_squared_error(labels, y)
    optimizer = tf.train.MomentumOptimizer(0.05, 0.9)
    if params["towers"]:
        optimizer = TowerOptimizer(lambda: tf.train.MomentumOptimizer(0.05, 0.9))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, y)}
    return estimators.EstimatorSpec(mode, None, loss, train_op, metrics)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(4, drop_remainder=True)


def results_of(folder, model_fn, towers=True):
    estimator = estimators.Estimator(model_fn, str(folder), params={"towers": towers})
    estimator.train(lambda: input_fn().repeat(), steps=3)
    predictions = [p["y"] for p in estimator.predict(input_fn)]
    values = [estimator.get_variable_value(n) for n in estimator.get_variable_names()]
    return estimator.get_variable_names(), values, estimator.evaluate(input_fn), predictions


@pytest.mark.parametrize("devices", [None, TWO])
def test_towers_make_the_step_of_one_model(tmp_path, devices):
    plain = results_of(tmp_path / "plain", model_fn, towers=False)
    towers = results_of(tmp_path / "towers", replicate_model_fn(model_fn, devices=devices))
    assert plain[0] == towers[0]
    for one, other in zip(plain[1], towers[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert plain[2] == pytest.approx(towers[2], rel=1e-5)
    np.testing.assert_allclose(plain[3], towers[3], rtol=1e-5)


def test_losses_may_be_summed(tmp_path):
    reduction = tf.losses.Reduction.SUM
    summed = replicate_model_fn(model_fn, reduction, TWO)
    mean = results_of(tmp_path / "mean", replicate_model_fn(model_fn, devices=TWO))
    both = results_of(tmp_path / "sum", summed)
    assert both[2]["mae"] != pytest.approx(mean[2]["mae"], rel=1e-3)


def test_wrong_calls(tmp_path):
    with pytest.raises(ValueError, match="Tower losses need to be reduced"):
        replicate_model_fn(model_fn, tf.losses.Reduction.NONE)
    with pytest.raises(ValueError, match="Please wrap optimizers with TowerOptimizer"):
        results_of(tmp_path, replicate_model_fn(model_fn, devices=TWO), towers=False)
    with pytest.raises(ValueError, match=r"Batch size 4 needs to be divisible by .*, which is 3"):
        results_of(tmp_path, replicate_model_fn(model_fn, devices=["/cpu:0"] * 3))
