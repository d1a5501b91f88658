import pytest

from tpu_estimator_compat.spec import ModeKeys

pytestmark = pytest.mark.usefixtures("graph")


def test_modes_are_tensorflows():
    assert (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) == ("train", "eval", "infer")
