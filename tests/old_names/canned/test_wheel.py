"""The modules of tensorflow-estimator: another release, or none."""

from importlib import metadata

import pytest

WITHOUT = """
from importlib import metadata
real = metadata.version

def version(package):
    if package == "tensorflow-estimator":
        raise metadata.PackageNotFoundError(package)
    return real(package)

metadata.version = version
import tpu_estimator_compat.v1 as tf
tf.estimator.Estimator, tf.estimator.RunConfig, tf.contrib.tpu.TPUEstimator, tf.contrib.estimator
for ask in (
    lambda: tf.estimator.DNNClassifier,
    lambda: tf.contrib.estimator.multi_head,
    lambda: tf.compat.v2.estimator.LinearRegressor,
):
    try:
        ask()
    except ImportError as error:
        print(error)
"""


def test_without_the_package_the_error_names_it(forks):
    """And all that needs no canned model is there."""
    done = forks.run("-c", WITHOUT)
    said = "Canned models and heads are those of tensorflow-estimator==2.15.0; found none. "
    install = "Install it: `pip install 'tensorflow-estimator==2.15.0'` brings no other package."
    assert done.stdout.splitlines() == 3 * [said + install]


def test_another_release_is_refused(monkeypatch):
    """Stands in for another environment: the version of the package in it."""
    from tpu_estimator_compat.old_names.canned import wheel

    monkeypatch.setattr(metadata, "version", lambda package: "2.12.0")
    with pytest.raises(ImportError, match=r"found 2\.12\.0"):
        wheel._check_version()


def test_the_original_is_not_imported(forks):
    code = (
        "import sys, tpu_estimator_compat.v1 as tf; tf.estimator.DNNClassifier;"
        "print('tensorflow_estimator' in sys.modules)"
    )
    done = forks.run("-c", code)
    assert done.stdout.split() == ["False"]
