"""Baselines: served names, and what they learn."""

import pytest
from tpu_estimator_compat.old_names.canned.wheel.canned import baseline

from .small_data import X, input_fn


@pytest.mark.parametrize("model", [baseline.BaselineRegressor, baseline.BaselineRegressorV2])
def test_a_baseline_learns_the_mean(model, tmp_path):
    estimator = model(str(tmp_path), optimizer="Adagrad")
    estimator.train(lambda: input_fn(X + 3.0), steps=200)
    assert abs(estimator.get_variable_value("baseline/bias")[0] - 3.0) < 0.6
