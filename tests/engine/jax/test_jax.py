import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import RUNTIMES, assert_near, on, variables
from support.legacy_models import (
    Fetching,
    examples,
    finite_input_fn,
    last_loss,
    logits_of,
    make_model_fn,
    metric_fn,
    train_input_fn,
)
from support.untuned import untuned

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as estimator_lib


def test_x64_stays_off_for_others(tmp_path):
    import jax

    on("jax", 1, tmp_path).train(train_input_fn, max_steps=1)
    assert not jax.config.jax_enable_x64


WITHOUT_JAX = """
import sys
import tpu_estimator_compat as tpu
tpu.RunConfig(runtime="jax"), tpu.TPUEstimator
print([name for name in sys.modules if name.startswith("tpu_estimator_compat.engine.jax")])
"""


def test_jax_is_imported_by_those_who_use_it(forks):
    """By this package; TensorFlow itself imports it, where it is installed."""
    done = forks.run("-c", WITHOUT_JAX)
    assert done.stdout == "[]\n", done.stderr


REPLICAS = (pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.full), 4)


def fetches():
    return {
        "step": tf.train.get_global_step(),
        "variable": "output/Read/ReadVariableOp:0",
        "tensor": "seen:0",
        "scalar": "norm:0",
        "loss": last_loss(),
    }


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
    calls, hook = [], Fetching(fetches)
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


def shuffled_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(examples()).repeat().shuffle(64, seed=1)
    return untuned(data.batch(params["batch_size"], drop_remainder=True))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    directory = tmp_path_factory.mktemp("uninterrupted")
    estimator = on("tensorflow", 2, directory)
    estimator.train(train_input_fn, max_steps=12)
    return variables(estimator)


@pytest.mark.parametrize("first", RUNTIMES)
def test_either_runtime_goes_on_from_the_other(tmp_path, first, uninterrupted):
    """On another number of replicas, too."""
    second = RUNTIMES[1 - RUNTIMES.index(first)]
    # Every restart begins the data anew: 4 steps are once through it.
    for runtime, replicas, stop in ((first, 2, 4), (second, 4, 8), (first, 1, 12)):
        estimator = on(runtime, replicas, tmp_path)
        estimator.train(train_input_fn, max_steps=stop)
    assert_near(variables(estimator), uninterrupted)


def test_input_goes_on_where_it_stood(tmp_path):
    found = []
    for way, stops in (("at once", [9]), ("cut", [4, 9])):
        for stop in stops:
            estimator = on("jax", 2, tmp_path / way, save_input_state=True)
            estimator.train(shuffled_input_fn, max_steps=stop)
        found.append(variables(estimator))
    assert_near(found[1], found[0])


def started_model_fn(way, path):
    build = make_model_fn()

    def model_fn(features, labels, mode, params):
        spec = build(features, labels, mode, params)
        if mode != tpu.ModeKeys.TRAIN:
            return spec

        def scaffold_fn():
            if way == "init_from_checkpoint":
                tf.train.init_from_checkpoint(path, {"hidden": "hidden", "output": "output"})
                return tf.train.Scaffold()
            hidden, output = tf.trainable_variables()
            saver = tf.train.Saver([hidden, output])
            return tf.train.Scaffold(init_fn=lambda _, session: saver.restore(session, path))

        return spec if way == "warm start" else spec._replace(scaffold_fn=scaffold_fn)

    return model_fn


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    source = on("jax", 2, tmp_path_factory.mktemp("source"))
    source.train(train_input_fn, max_steps=5)
    return source


@pytest.mark.parametrize("way", ["init_from_checkpoint", "warm start", "init_fn"])
def test_first_values_from_another_checkpoint(tmp_path, source, way):
    path, values = source.latest_checkpoint(), {}
    for runtime in RUNTIMES:
        warm = {"warm_start_from": source.model_dir} if way == "warm start" else {}
        model_fn = started_model_fn(way, path)
        estimator = on(runtime, 2, tmp_path / runtime, model_fn, **warm)
        estimator.train(train_input_fn, max_steps=4)
        values[runtime] = variables(estimator)
        for name in ("hidden", "output"):
            first = tf.train.load_variable(str(tmp_path / runtime / "model.ckpt-0"), name)
            np.testing.assert_array_equal(first, source.get_variable_value(name))
    assert values["jax"]["global_step"] == 4
    assert_near(values["jax"], values["tensorflow"])


def test_training_and_evaluation_by_turns(tmp_path):
    results = {}
    for runtime in RUNTIMES:
        estimator = on(runtime, 2, tmp_path / runtime, save_checkpoints_steps=4)
        results[runtime], _ = estimator_lib.train_and_evaluate(
            estimator,
            estimator_lib.TrainSpec(train_input_fn, max_steps=8),
            estimator_lib.EvalSpec(train_input_fn, steps=3, throttle_secs=0),
        )
    assert results["jax"]["global_step"] == 8
    for name, value in results["tensorflow"].items():
        np.testing.assert_allclose(results["jax"][name], value, 1e-5)
