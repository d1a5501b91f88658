import os
import pathlib

import pytest
from support import python_path

ROOT = pathlib.Path(__file__).parents[3]
PACKAGE = {
    "__init__.py": "from tensorflow_gan.python import *",
    "python/__init__.py": """
from tensorflow_gan.python import estimator
__all__ = ["estimator"]
""",
    "python/estimator.py": """
import inspect
import tensorflow as tf

class GANEstimator(tf.estimator.Estimator):
    def __init__(self, model_dir, generator_fn):
        wants_mode = "mode" in inspect.getargspec(generator_fn).args

        def model_fn(features, mode):
            loss = generator_fn(features, mode) if wants_mode else generator_fn(features)
            optimizer = tf.train.GradientDescentOptimizer(0.5)
            train_op = optimizer.minimize(loss, tf.train.get_global_step())
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

        super().__init__(model_fn, model_dir)
""",
}
SCRIPT = """
import sys
import tensorflow as tf
import tensorflow.contrib.gan as tfgan

print("imported" if "tensorflow_probability" in sys.modules else "untouched")

def generator_fn(features, mode):
    return tf.reduce_sum(tf.square(tf.get_variable("w", [2]) - features))

estimator = tf.contrib.gan.estimator.GANEstimator("gan", generator_fn)
assert tfgan.estimator.GANEstimator is type(estimator)
estimator.train(lambda: tf.data.Dataset.from_tensors([3.0, 4.0]).repeat(), max_steps=2)
print(estimator.get_variable_value("w"))
"""


@pytest.fixture
def run(tmp_path, forks):
    def of() -> tuple[str, str]:
        (tmp_path / "script.py").write_text(SCRIPT)
        words = ["-m", "tpu_estimator_compat", "run", "script.py"]
        paths = python_path.joined(ROOT, tmp_path / "installed")
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        done = forks.run(*words, cwd=tmp_path, env=environment)
        return done.stdout, done.stderr

    return of


def test_a_gan_of_the_package(run, tmp_path):
    for name, source in PACKAGE.items():
        path = tmp_path / "installed" / "tensorflow_gan" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    printed, errors = run()
    assert printed.split("\n")[:2] == ["untouched", "[3. 4.]"], errors


def test_the_package_is_named_where_it_is_missing(run):
    printed, errors = run()
    assert printed.split() == ["untouched"]
    assert "tf.contrib.gan is in the package tensorflow-gan today" in errors
    assert "Install tensorflow-gan, tensorflow-probability and tensorflow-hub." in errors
