"""The files that a package index gets, and an installation of them, beside a clone."""

import os
import pathlib
import subprocess
import sys
import sysconfig
import tarfile
import venv

import pytest
from support import python_path

import tpu_estimator_compat

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
VERSION = tpu_estimator_compat.__version__

TRAINING = """
import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    x = np.ones([64, 1], np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((x, x)).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


config = tf.contrib.tpu.RunConfig(model_dir="model")
estimator = tf.contrib.tpu.TPUEstimator(model_fn, config=config, train_batch_size=8)
estimator.train(input_fn, max_steps=3)
print("saved", estimator.latest_checkpoint())
"""


def run(*words, cwd, **variables):
    done = subprocess.run(
        [*map(str, words)],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


def test_a_package_index_takes_them(files):
    assert len(list(files.iterdir())) == 2
    run(sys.executable, "-m", "twine", "check", "--strict", *files.iterdir(), cwd=files)


def test_the_source_has_the_guide_the_tests_and_the_licence(files):
    [path] = files.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    pages = (ROOT / "migration_guide").glob("*.md")
    wanted = {f"migration_guide/{page.name}" for page in pages} | {"LICENSE", "README.md"}
    wanted |= {"tests/conftest.py", "migration_guide/examples/digits.py"}
    assert not wanted - names
    assert not [name for name in names if name.endswith(".pyc")]


def test_the_wheel_runs_in_an_environment_of_its_own(files, tmp_path):
    """What it requires is the test environment's; this package is the wheel's."""
    [wheel] = files.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    bin = tmp_path / "env" / "bin"
    run(bin / "pip", "install", "-q", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    [packages] = (tmp_path / "env").glob("lib/python*/site-packages")
    # Without its .pth files, which would bring the clone.
    required = python_path.joined(packages, sysconfig.get_path("purelib"))
    command = bin / "tpu-estimator-compat"
    assert VERSION in run(command, "--version", cwd=tmp_path, PYTHONPATH=required)
    (tmp_path / "train.py").write_text(TRAINING)
    found = run(command, "run", "train.py", cwd=tmp_path, PYTHONPATH=required)
    assert found.splitlines()[-1] == "saved model/model.ckpt-3"
    code = "import tpu_estimator_compat as t; print(t.__file__)"
    where = run(bin / "python", "-c", code, cwd=tmp_path, PYTHONPATH=required)
    assert pathlib.Path(where.strip()).is_relative_to(packages)
