"""The names of modes."""

import pytest
import tensorflow as tf

from tpu_estimator_compat.spec import ModeKeys


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as built:
        yield built


def test_modes_are_tensorflows():
    assert (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) == ("train", "eval", "infer")
