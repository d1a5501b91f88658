"""Canned models: what they learn, also on replicas; other releases of their package, or none."""

from importlib import metadata

import numpy as np
import pytest
import tensorflow as tf
from tpu_estimator_compat.old_names.canned.wheel.canned import (
    dnn,
    dnn_linear_combined,
    linear,
)

from tpu_estimator_compat.engine.packages import tensorflow_estimator
from tpu_estimator_compat.estimator import RunConfig

from .small_data import COLUMN, WORD, X, input_fn

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
    need = "Canned models, evaluations, exports and sessions need tensorflow-estimator==2.15.0"
    said = f"{need}; installed: none. "
    install = "Install it: `pip install 'tensorflow-estimator==2.15.0'` brings no other package."
    assert done.stdout.splitlines() == 3 * [said + install]


def test_another_release_is_refused(monkeypatch):
    """Stands in for another environment: the version of the package in it."""
    monkeypatch.setattr(metadata, "version", lambda package: "2.12.0")
    with pytest.raises(ImportError, match=r"installed: 2\.12\.0"):
        tensorflow_estimator._check_version()


def test_the_original_is_not_imported(forks):
    code = (
        "import sys, tpu_estimator_compat.v1 as tf; tf.estimator.DNNClassifier;"
        "print('tensorflow_estimator' in sys.modules)"
    )
    done = forks.run("-c", code)
    assert done.stdout.split() == ["False"]


@pytest.mark.parametrize("model", [linear.LinearClassifier, linear.LinearClassifierV2])
def test_fit(model, tmp_path):
    """Keras' fit makes the steps that `train` makes."""
    trained = model([COLUMN], str(tmp_path / "trained"))
    trained.train(input_fn, steps=4)
    fitted = model([COLUMN], str(tmp_path / "fitted"))
    fitted.keras_model(input_fn).fit(input_fn(), steps_per_epoch=4, epochs=1, verbose=0)
    for name in trained.get_variable_names():
        np.testing.assert_allclose(
            fitted.get_variable_value(name), trained.get_variable_value(name), rtol=1e-5
        )


@pytest.mark.parametrize("model", [dnn.DNNRegressor, dnn.DNNRegressorV2])
def test_moving_averages_move(model, tmp_path):
    estimator = model([3], [COLUMN], str(tmp_path), batch_norm=True)
    estimator.train(lambda: input_fn(X), steps=3)
    mean = estimator.get_variable_value("dnn/hiddenlayer_0/batchnorm_0/moving_mean")
    assert np.abs(mean).max() > 0


@pytest.mark.parametrize(
    "model",
    [
        dnn_linear_combined.DNNLinearCombinedClassifier,
        dnn_linear_combined.DNNLinearCombinedClassifierV2,
    ],
)
def test_both_halves_count_a_step_once(model, tmp_path):
    estimator = model(
        str(tmp_path),
        linear_feature_columns=[WORD],
        dnn_feature_columns=[COLUMN],
        dnn_hidden_units=[2],
    )
    estimator.train(input_fn, steps=3)
    assert estimator.get_variable_value("global_step") == 3
    assert np.abs(estimator.get_variable_value("linear/linear_model/word/weights")).max() > 0


@pytest.mark.parametrize(
    ("model", "mean"),
    [
        (linear.LinearRegressor, tf.compat.v1.losses.Reduction.MEAN),
        (linear.LinearRegressorV2, "sum_over_batch_size"),
    ],
)
def test_replicas_make_the_step_of_one(model, mean, tmp_path):
    """Each minimises its share of the mean, and gradients are added up."""

    def batches(size):
        return tf.data.Dataset.from_tensor_slices(({"x": X}, X)).batch(size).repeat()

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    config = RunConfig(model_dir=str(tmp_path / "two"), train_distribute=strategy)
    options = {"optimizer": "SGD", "loss_reduction": mean}
    two = model([COLUMN], config=config, **options).train(lambda: batches(4), steps=2)
    one = model([COLUMN], str(tmp_path / "one"), **options).train(lambda: batches(8), steps=2)
    name = "linear/linear_model/x/weights"
    np.testing.assert_allclose(
        two.get_variable_value(name), one.get_variable_value(name), rtol=1e-5
    )
