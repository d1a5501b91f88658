"""Wide and deep models: served names, and both halves."""

import numpy as np
import pytest
from tpu_estimator_compat.old_names.canned.wheel.canned import dnn_linear_combined

from .small_data import COLUMN, WORD, input_fn


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


def test_a_model_without_columns_is_refused():
    with pytest.raises(ValueError, match="Either linear_feature_columns or dnn_feature_columns"):
        dnn_linear_combined.DNNLinearCombinedRegressor()
