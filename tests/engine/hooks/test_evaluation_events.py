import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn

from tpu_estimator_compat.engine.hooks.evaluation_events import shown


def test_results_show_the_digits_of_their_own_dtype():
    assert shown({"loss": np.float32(6.9600205)}) == "loss = 6.9600205"


def test_results_are_events_under_the_evaluations_name(tmp_path):
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, steps=3)
    result = estimator.evaluate(train_input_fn, steps=2, name="dev")
    [events] = (tmp_path / "eval_dev").iterdir()
    found = {
        value.tag: (event.step, value.simple_value)
        for event in tf.train.summary_iterator(str(events))
        for value in event.summary.value
    }
    assert found["loss"] == (3, pytest.approx(result["loss"]))
    assert found["accuracy"] == (3, pytest.approx(result["accuracy"]))
    assert "checkpoint_path" in found
    assert estimator.eval_dir("dev") == str(tmp_path / "eval_dev")
    assert estimator.eval_dir() == str(tmp_path / "eval")
