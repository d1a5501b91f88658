"""The same training, evaluation and prediction as on TensorFlow's replicas."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import RUNTIMES, on, variables
from support.legacy_models import finite_input_fn, logits_of, metric_fn, train_input_fn

import tpu_estimator_compat as tpu

REPLICAS = (pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.full), 4)


class Fetching(tf.train.SessionRunHook):
    """Keeps tensors of every step: the global step, a variable, tensors, the loss."""

    def __init__(self):
        self.seen = []

    def before_run(self, run_context):
        graph = run_context.session.graph
        return tf.train.SessionRunArgs(
            {
                "step": tf.train.get_global_step(graph),
                "variable": graph.get_tensor_by_name("output/Read/ReadVariableOp:0"),
                "tensor": "seen:0",
                "scalar": "norm:0",
                "loss": tf.get_collection(tf.GraphKeys.LOSSES)[-1],
            }
        )

    def after_run(self, run_context, run_values):
        self.seen.append(run_values.results)


def model_of(calls):
    """A classifier with a dynamic learning rate; its host call adds to the list `calls`."""

    def model_fn(features, labels, mode, params):
        logits = tf.identity(logits_of(features), name="seen")
        if mode == tpu.ModeKeys.PREDICT:
            predictions = {"logits": logits, "class": tf.argmax(logits, -1), "features": features}
            return tpu.TPUEstimatorSpec(mode, predictions=predictions)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        tf.reduce_sum(tf.abs(logits), name="norm")
        if mode == tpu.ModeKeys.EVAL:
            metrics = (metric_fn, [labels, logits])
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
        step = tf.train.get_global_step()
        rate = tf.train.piecewise_constant(step, [4, 8], [0.1, 0.05, 0.01])
        rate *= tf.train.exponential_decay(1.0, step, 3, 0.5)
        optimizer = tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(rate, 0.9))
        train_op = optimizer.minimize(loss, step)
        with tf.control_dependencies([train_op]):
            after = tf.reshape(step.read_value(), [1])

        def host_call(loss, step):
            return tf.py_func(lambda *v: calls.append([x.tolist() for x in v]), [loss, step], [])

        call = (host_call, [tf.reshape(loss, [1]), after])
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=call)

    return model_fn


def run(runtime, replicas, root):
    """Everything that is compared, by name."""
    calls, hook = [], Fetching()
    estimator = on(runtime, replicas, root, model_of(calls))
    estimator.train(train_input_fn, steps=7)
    estimator.train(train_input_fn, steps=4, hooks=[hook])
    estimator = on(runtime, replicas, root, model_of(calls), tpu_config={"iterations_per_loop": 1})
    estimator.train(train_input_fn, steps=2, hooks=[hook])
    evaluation = estimator.evaluate(train_input_fn, steps=3)
    rows = list(estimator.predict(finite_input_fn(21)))
    return {
        "calls": calls,
        "fetched": hook.seen,
        "variables": variables(estimator),
        "evaluation": evaluation,
        "predictions": {k: np.stack([row[k] for row in rows]) for k in rows[0]},
    }


@pytest.fixture(scope="module", params=REPLICAS)
def runs(request, tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return {r: run(r, request.param, root / r) for r in RUNTIMES}


def assert_same(found, expected, path):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), path
        for name, value in expected.items():
            assert_same(found[name], value, f"{path}/{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for i, value in enumerate(expected):
            assert_same(found[i], value, f"{path}[{i}]")
    else:
        found, expected = np.asarray(found), np.asarray(expected)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), path
        np.testing.assert_allclose(found, expected, 1e-5, 1e-6, err_msg=path)


@pytest.mark.parametrize("what", ["calls", "fetched", "variables", "evaluation", "predictions"])
def test_the_same(runs, what):
    assert_same(runs["jax"][what], runs["tensorflow"][what], what)


def test_predictions_without_padding(runs):
    assert len(runs["jax"]["predictions"]["class"]) == 21
