"""Served names: the functions that make logits."""

import pytest
from tpu_estimator_compat.old_names.canned.wheel.canned import dnn

from .small_data import COLUMN


def test_units_that_are_no_integer_are_refused():
    with pytest.raises(ValueError, match="units must be an int"):
        dnn.dnn_logit_fn_builder(2.0, [2], [COLUMN], None, None, None, False)
