"""Training that goes on from checkpoints, whichever runtime wrote them."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import RUNTIMES, on, variables
from support.legacy_models import examples, make_model_fn, train_input_fn
from support.untuned import untuned

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as estimator_lib


def shuffled_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(examples()).repeat().shuffle(64, seed=1)
    return untuned(data.batch(params["batch_size"], drop_remainder=True))


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, 1e-5, 1e-6, err_msg=name)


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
    assert_same(variables(estimator), uninterrupted)


def test_input_goes_on_where_it_stood(tmp_path):
    found = []
    for way, stops in (("at once", [9]), ("cut", [4, 9])):
        for stop in stops:
            estimator = on("jax", 2, tmp_path / way, save_input_state=True)
            estimator.train(shuffled_input_fn, max_steps=stop)
        found.append(variables(estimator))
    assert_same(found[1], found[0])


def started_model_fn(way, path):
    """A model_fn whose variables start from a checkpoint, in one way or the other."""
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
    assert values["jax"]["global_step"] == 4
    assert_same(values["jax"], values["tensorflow"])


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
