"""Proofs of the linear models."""

import numpy as np
import tensorflow as tf2
from tpu_estimator_compat.old_names.canned.wheel.canned import linear

from support.proofs import proves
from support.proofs.canned.models import COLUMN, config, trained
from tpu_estimator_compat.old_names.canned.contrib_heads import regression_head

FEATURES = {"x": np.array([1.0, 2.0], np.float32), "id": np.array(["a", "b"])}
LABELS = np.array([[1.0], [3.0]], np.float32)


def data_with_ids():
    return tf2.data.Dataset.from_tensors((FEATURES, LABELS)).repeat()


@proves("tf.estimator.LinearClassifier", "tf.estimator.LinearRegressor")
def trains_a_linear_model(model, tmp_path):
    trained(model([COLUMN], config=config(tmp_path), optimizer="Adagrad"))


@proves("tf.estimator.LinearEstimator")
def trains_a_linear_model_below_a_head(model, tmp_path):
    trained(model(regression_head(), [COLUMN], config=config(tmp_path)))


@proves("tf.estimator.experimental.LinearSDCA")
def trains_by_dual_coordinates(optimizer, tmp_path):
    """Each example has a dual variable, found again under its id."""
    by_id = optimizer("id", symmetric_l2_regularization=0.1)
    model = linear.LinearRegressorV2([COLUMN], config=config(tmp_path), optimizer=by_id)
    model.train(data_with_ids, steps=20)
    assert model.evaluate(data_with_ids, steps=1)["loss"] < 0.5
    values = model.get_variable_value("ShardedMutableHashTable-1-of-1-values")
    assert np.count_nonzero(values.any(axis=1)) == 2
