"""Replicas of canned models make the step of one."""

import numpy as np
import pytest
import tensorflow as tf
from tpu_estimator_compat.old_names.canned.wheel.canned import linear

from tpu_estimator_compat.estimator import RunConfig

from .small_data import COLUMN, X


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
