import keras
import pytest
from support.legacy_models import make_estimator, train_input_fn

from .fitting import dataset


def test_evaluate_agrees_with_the_estimator(estimator):
    estimator.train(train_input_fn, steps=6)
    model = estimator.keras_model()
    ours = model.evaluate(dataset(), return_dict=True, verbose=0)
    theirs = make_estimator(estimator.model_dir).evaluate(train_input_fn, steps=4)
    assert ours["accuracy"] == pytest.approx(theirs["accuracy"], rel=1e-6)
    assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
    assert [m.name for m in model.metrics] == ["loss", "accuracy"]
    assert all(isinstance(m, keras.metrics.Metric) for m in model.metrics)
    again = model.evaluate(dataset(), return_dict=True, verbose=0)
    assert again == ours
