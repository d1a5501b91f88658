"""Deep models: served names, and moving averages."""

import numpy as np
import pytest
from tpu_estimator_compat.old_names.canned.wheel.canned import dnn

from .small_data import COLUMN, X, input_fn


@pytest.mark.parametrize("model", [dnn.DNNRegressor, dnn.DNNRegressorV2])
def test_moving_averages_move(model, tmp_path):
    estimator = model([3], [COLUMN], str(tmp_path), batch_norm=True)
    estimator.train(lambda: input_fn(X), steps=3)
    mean = estimator.get_variable_value("dnn/hiddenlayer_0/batchnorm_0/moving_mean")
    assert np.abs(mean).max() > 0
