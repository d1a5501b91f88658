"""A model_fn that asks whether XLA compiles it: under `use_tpu=True` it does, as on a TPU."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tpu_estimator_compat.v1.python.ops import control_flow_util

from tpu_estimator_compat.estimator import EstimatorSpec
from tpu_estimator_compat.tpu import RunConfig, TPUEstimator, TPUEstimatorSpec

X = np.random.RandomState(0).randn(8, 3).astype(np.float32)


def is_xla_compiled():
    context = tf.get_default_graph()._get_control_flow_context()
    return control_flow_util.GetContainingXLAContext(context) is not None


def metric_fn(loss):
    return {"mean_loss": tf.metrics.mean(loss), "asked": tf.metrics.mean(is_xla_compiled())}


def model_fn(features, labels, mode, params):
    weights = tf.get_variable("weights", [3], initializer=tf.ones_initializer())

    def inner(i, total):
        assert is_xla_compiled() == params["use_tpu"]
        return i + 1, total + tf.reduce_mean(features["x"] * weights)

    _, loss = tf.while_loop(lambda i, _: i < 2, inner, (0, 0.0))
    if is_xla_compiled():
        per_example = tf.fill([features["x"].shape[0]], loss)
        return TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [per_example]))
    return EstimatorSpec(mode, loss=loss, eval_metric_ops={"mean_loss": tf.metrics.mean(loss)})


def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices({"x": X})
    return data.batch(params["batch_size"], drop_remainder=True)


@pytest.mark.parametrize("use_tpu", [True, False])
def test_gets_the_answer_of_a_tpu(tmp_path, use_tpu):
    config = RunConfig(model_dir=str(tmp_path))
    estimator = TPUEstimator(
        model_fn, config=config, use_tpu=use_tpu, train_batch_size=4, eval_batch_size=4
    )
    weights = {"weights": np.ones(3, np.float32), "global_step": np.int64(0)}
    with tf.Graph().as_default(), tf.Session() as session:
        for name, value in weights.items():
            tf.get_variable(name, initializer=value)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    results = estimator.evaluate(input_fn, steps=2)
    np.testing.assert_allclose(results["mean_loss"], 2 * X.mean(), rtol=1e-5)
    assert results.get("asked", 0.0) == 0.0  # metrics are the host's
