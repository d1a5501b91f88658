"""Calls of several steps end where an epoch, an evaluation or a validation does."""

import itertools

import pytest

from .fitting import dataset


def test_steps_per_execution_never_overshoots(estimator):
    model, step = estimator.keras_model(), 0
    assert model.steps_per_execution == 3
    for steps in (1, 2, 3, 4, 7):
        model.fit(dataset(None), steps_per_epoch=steps, epochs=2, verbose=0)
        step += 2 * steps
        assert estimator.latest_checkpoint().endswith(f"model.ckpt-{step}")


def test_validation_has_steps_of_its_own(estimator):
    """Also where an epoch of training is shorter than a loop, or longer than the validation."""
    model = estimator.keras_model()
    for steps, train_steps in itertools.product((None, 2, 7), (1, 5)):
        data = dataset(None if steps else 2)
        history = model.fit(
            dataset(None),
            steps_per_epoch=train_steps,
            validation_data=data,
            validation_steps=steps,
            epochs=2,
            verbose=0,
        )
        expected = model.evaluate(data, steps=steps, return_dict=True, verbose=0)
        assert history.history["val_loss"][-1] == pytest.approx(expected["loss"], rel=1e-6)
        assert history.history["val_accuracy"][-1] == pytest.approx(expected["accuracy"], rel=1e-6)
