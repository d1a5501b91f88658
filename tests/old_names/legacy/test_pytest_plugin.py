import pathlib

import pytest

WAYS = {
    "run": ("-m", "tpu_estimator_compat", "run", "-m", "pytest"),
    "plugin": ("-m", "pytest", "-p", "tpu_estimator_compat.old_names.legacy.pytest_plugin"),
}
FILES = {
    "model.py": """
import tensorflow as tf
from tensorflow.contrib import tpu as contrib_tpu

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return contrib_tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
""",
    "tests/conftest.py": """
import pytest
import tensorflow as tf
import model

@pytest.fixture
def estimator(tmp_path):
    config = tf.contrib.tpu.RunConfig(model_dir=str(tmp_path))
    return tf.contrib.tpu.TPUEstimator(
        model.model_fn, config=config, train_batch_size=4, use_tpu=False
    )
""",
    "tests/test_model.py": """
import tensorflow as tf

def input_fn(params):
    return tf.data.Dataset.from_tensors((tf.ones([4, 2]), tf.ones([4, 1]))).repeat()

def test_trains(estimator):
    estimator.train(input_fn, max_steps=3)
    assert estimator.get_variable_value("global_step") == 3

def test_graphs():
    assert not tf.executing_eagerly()
    assert tf.placeholder(tf.float32, [None, 2]).shape[1].value == 2

def test_fails():
    left = 1 + 1
    assert left == 3
""",
    "tests/test_of_today.py": """
import keras

def test_keras_is_todays():
    assert int(keras.__version__.split(".")[0]) >= 3
""",
}


@pytest.fixture
def project(tmp_path) -> pathlib.Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "options",
    [
        (),
        pytest.param(("--import-mode=importlib",), marks=pytest.mark.slow),
        pytest.param(("--assert=plain",), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_tests_are_collected_as_they_are(python, project, way, options):
    done = python(*WAYS[way], "-q", "-p", "no:cacheprovider", *options, "tests")
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert ("assert 2 == 3" in done.stdout) == ("--assert=plain" not in options)
    assert done.returncode == 1


@pytest.mark.slow
def test_the_processes_of_xdist_too(python, project):
    done = python(*WAYS["run"], "-q", "-n", "2", "-p", "no:cacheprovider", "tests")
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
