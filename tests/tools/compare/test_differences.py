import numpy as np
import pytest

from tpu_estimator_compat.tools.compare.differences import Bounds, array, curve
from tpu_estimator_compat.tools.compare.report import Agreement, Curve


def test_tolerance_is_a_multiple_of_the_yardstick():
    old = np.asarray([1.0, 2.0], np.float32)
    yard = np.asarray([1.0, 2.0 + 2e-5], np.float32)
    within, beyond = (np.asarray([1.0, 2.0 + d], np.float32) for d in (1e-4, 1e-3))
    assert array("v", old, within, [yard], Bounds(10.0)).agreement is Agreement.ROUNDING
    assert array("v", old, beyond, [yard], Bounds(10.0)).agreement is Agreement.DIFFERENT


def test_rounding_adds_up_over_steps():
    """Once the yardstick has differed, later steps may differ as much."""
    old = Curve((1, 2, 3), (1.0, 1.0, 1.0))
    yard = Curve((1, 2, 3), (1.0, 1.001, 1.0))
    found = curve("loss", old, Curve((1, 2, 3), (1.0, 1.0, 1.005)), [yard], Bounds(10.0))
    assert found.agreement is Agreement.ROUNDING
    found = curve("loss", old, Curve((1, 2, 3), (1.005, 1.0, 1.0)), [yard], Bounds(10.0))
    assert (found.agreement, found.first_step) == (Agreement.DIFFERENT, 1)


@pytest.mark.parametrize(
    ("old", "new", "agreement"),
    [
        ([np.nan, 1.0], [np.nan, 1.0], Agreement.EQUAL),
        ([np.nan, 1.0], [0.0, 1.0], Agreement.DIFFERENT),
        ([np.inf, 1.0], [np.inf, 1.0], Agreement.EQUAL),
        ([], [], Agreement.EQUAL),
    ],
)
def test_numbers_that_are_not_finite(old, new, agreement):
    a, b = (np.asarray(x, np.float32) for x in (old, new))
    assert array("v", a, b, [], Bounds(10.0)).agreement is agreement


def test_other_shape_or_dtype():
    old = np.zeros(3, np.float32)
    for new in (np.zeros(4, np.float32), np.zeros(3)):
        found = array("v", old, new, [], Bounds(10.0))
        assert found.agreement is Agreement.DIFFERENT
        assert "instead of float32[3]" in found.note
