"""Linear models: served names, first loss, names of variables, Keras' fit, replicas."""

import numpy as np
import pytest
from tpu_estimator_compat.old_names.canned.wheel.canned import linear

from .small_data import COLUMN, WORD, input_fn

OF_1_AND_2 = pytest.mark.parametrize(
    ("model", "slot"),
    [
        (linear.LinearClassifier, "linear/linear_model/x/weights/part_0/Ftrl"),
        (linear.LinearClassifierV2, "training/Ftrl/linear/linear_model/x/weights/linear"),
    ],
)


@OF_1_AND_2
def test_first_loss_and_names(model, slot, tmp_path):
    estimator = model([COLUMN, WORD], str(tmp_path))
    untrained = estimator.evaluate(input_fn, steps=2)
    np.testing.assert_allclose(untrained["average_loss"], np.log(2.0), rtol=1e-6)
    estimator.train(input_fn, steps=2)
    assert slot in estimator.get_variable_names()
    assert estimator.get_variable_value("linear/linear_model/word/weights").shape == (2, 1)
    predictions = estimator.predict(input_fn, predict_keys=["classes"])
    assert next(predictions)["classes"] == [b"0"]
    predictions.close()


@OF_1_AND_2
def test_fit(model, slot, tmp_path):
    """Keras' fit makes the steps that `train` makes."""
    trained = model([COLUMN], str(tmp_path / "trained"))
    trained.train(input_fn, steps=4)
    fitted = model([COLUMN], str(tmp_path / "fitted"))
    fitted.keras_model(input_fn).fit(input_fn(), steps_per_epoch=4, epochs=1, verbose=0)
    for name in trained.get_variable_names():
        np.testing.assert_allclose(
            fitted.get_variable_value(name), trained.get_variable_value(name), rtol=1e-5
        )
