import itertools
import re

import keras
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


def bar_ends(text):
    """The numbers of steps that lines of progress show, and of how many."""
    return re.findall(r"(\d+)/(\w+)", re.sub(r"\x1b\[[0-9;]*m", "", text))


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize("known", [True, False])
def test_the_line_of_progress_counts_the_steps_that_are_made(estimator, capsys, known):
    """A call has three steps, the data four batches."""
    model = estimator.keras_model()
    data = dataset() if known else dataset().filter(lambda x, y: True)
    total = "4" if known else "Unknown"
    model.fit(data, verbose=1)
    model.evaluate(data, verbose=1)
    model.predict(data.map(lambda x, y: x), verbose=1)
    shown = bar_ends(capsys.readouterr().out)
    assert {of for _, of in shown} <= {total, "4"}
    assert {int(made) for made, _ in shown} <= {1, 3, 4}
    assert [made for made, _ in shown].count("4") >= 3
    model.fit(data, verbose=0)
    model.fit(data, callbacks=[keras.callbacks.ProgbarLogger()], verbose=1)
    model.fit(data, verbose=2)
    assert bar_ends(capsys.readouterr().out)[-1] == ("4", "4")
