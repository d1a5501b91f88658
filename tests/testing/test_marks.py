"""Tests with the mark `replicas`, run: each has its replicas, and all else is as without it."""

import os
import subprocess
import sys

import pytest
from support import inner_pytest

pytestmark = pytest.mark.slow  # each session imports TensorFlow

CONFTEST = """
    import pytest

    @pytest.fixture(scope="session", params=["p"])
    def of_session(request, replicas):
        return replicas

    @pytest.fixture(scope="module")
    def of_module(replicas):
        return replicas
"""

MODULE = """
    import unittest
    import numpy as np
    import pytest
    import tensorflow as tf
    import tpu_estimator_compat as tpu
    from tpu_estimator_compat import testing

    def cpus():
        return len(tf.config.list_logical_devices("CPU"))

    OUTSIDE = tf.Variable(2.0)

    @tf.function
    def doubled(x):
        return OUTSIDE * x

    def model_fn(features, labels, mode, params):
        w = tf.compat.v1.get_variable("w", [], initializer=tf.compat.v1.ones_initializer())
        loss = tf.reduce_mean((w * features - 3) ** 2)
        optimizer = tpu.CrossShardOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn(params):
        return tf.data.Dataset.from_tensors(X).unbatch().batch(params["batch_size"], True).repeat()

    def trained(model_dir, runtime="tensorflow"):
        config = tpu.RunConfig(model_dir=model_dir, runtime=runtime)
        estimator = tpu.TPUEstimator(model_fn, train_batch_size=12, config=config)
        estimator.train(input_fn, steps=2)
        return estimator.get_variable_value("w")

    def test_before():
        assert cpus() == 1
        assert doubled(3.0) == 6

    @pytest.mark.replicas([1, 3])
    @pytest.mark.parametrize("x", ["a::b[c]/d", "é\\n"])
    def test_count(replicas, x, of_session, of_module):
        assert cpus() == replicas == of_session == of_module
        assert not tf.config.list_logical_devices("GPU")
        assert doubled(3.0) == 6

    X = np.arange(12, dtype=np.float32)

    @pytest.mark.replicas(1, 2, 4)
    @pytest.mark.parametrize("runtime", ["tensorflow", "jax"])
    def test_training(runtime, tmp_path, caplog):
        pytest.importorskip("jax")
        tf.get_logger().setLevel("INFO")
        w = 1.0
        for _ in range(2):
            w -= 0.1 * np.mean(2 * X * (w * X - 3))
        assert trained(str(tmp_path), runtime) == pytest.approx(w, rel=1e-5)
        assert f"on {cpus()} cpu device(s)" in caplog.text or runtime == "tensorflow"

    @pytest.mark.replicas(4)
    def test_jax():
        jax = pytest.importorskip("jax")
        assert [d.platform for d in jax.devices()] == ["cpu"] * 4
        assert jax.numpy.ones(3).sum() == 3

    @pytest.mark.replicas(2)
    class TestUnit(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.value = cpus()

        def test_unit(self):
            self.assertEqual(self.value, 2)
            self.assertEqual(testing.with_replicas(3, cpus), 3)
            self.assertEqual(cpus(), 2)

    @pytest.mark.replicas(2)
    class TestTF(tf.test.TestCase):
        def test_tf(self):
            self.assertAllClose(tf.ones(2), [1, 1])
            self.assertEqual(cpus(), 2)

    @pytest.mark.replicas(2)
    def test_fails():
        values = [1, 2]
        assert values == [1, 3]

    @pytest.mark.replicas(2)
    def test_golden(golden):
        golden(1.5)

    def test_after():
        assert cpus() == 1
        jax = pytest.importorskip("jax")
        assert len(jax.devices()) == 1
        assert doubled(3.0) == 6
"""


@pytest.fixture
def folder(tmp_path):
    inner_pytest.write(tmp_path, conftest=CONFTEST, test_m=MODULE)
    return tmp_path


EXPECTED = {"failed": 1, "passed": 16, "skipped": 1}  # `test_session`, of `tf.test.TestCase`


@pytest.mark.parametrize(
    "words", [(), ("-p", "xdist", "-n2"), ("-p", "pytest_randomly")], ids=["", "xdist", "randomly"]
)
def test_each_has_its_replicas(folder, words):
    args = ("-rA", "--strict-markers", "--update-golden", *words)
    session = inner_pytest.run(folder, *args)
    assert session.counts() == EXPECTED, session.output
    assert session.outcome("test_fails") == "FAILED"
    assert ">       assert values == [1, 3]" in session.output
    assert "new: golden/test_m/test_golden.json" in session.output


def test_debugger(folder):
    session = inner_pytest.run(folder, "--pdb", "-k", "count or fails", "-s")
    assert session.counts()["failed"] == 1
    assert "entering PDB" in session.output


def test_legacy_tests_have_replicas_under_the_command_run(tmp_path):
    source = """
        import pytest
        import tensorflow as tf

        class LegacyTest(tf.test.TestCase):
            @pytest.mark.replicas(2)
            def test_layers(self):
                with self.test_session() as session:
                    y = tf.layers.dense(tf.ones([2, 2]), 1)
                    session.run(tf.global_variables_initializer())
                    self.assertEqual(session.run(y).shape, (2, 1))
                self.assertEqual(len(tf.config.list_logical_devices("CPU")), 2)
    """
    inner_pytest.write(tmp_path, test_m=source)
    words = ["tpu_estimator_compat", "run", "-m", "pytest", "-p", inner_pytest.PLUGIN]
    done = subprocess.run(
        [sys.executable, "-m", *words, "-k", "layers"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert inner_pytest.Session(done.returncode, done.stdout).counts()["passed"] == 1, done.stdout
