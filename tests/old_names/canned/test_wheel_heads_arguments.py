"""Wrong arguments of heads are named."""

import pytest
from tpu_estimator_compat.old_names.canned.wheel.canned import head as v1

from tpu_estimator_compat.old_names.canned import contrib_heads as contrib
from tpu_estimator_compat.v1 import estimator as heads


@pytest.mark.parametrize(
    ("make_head", "words"),
    [
        (lambda: heads.BinaryClassHead(thresholds=[0.5, 1.0]), "thresholds not in (0, 1)"),
        (lambda: heads.BinaryClassHead(loss_reduction="none"), "Invalid loss_reduction: none"),
        (lambda: heads.MultiClassHead(2), "n_classes must be > 2: 2"),
        (lambda: heads.MultiLabelHead(1), "n_classes must be > 1 for multi-label"),
        (lambda: heads.RegressionHead(0), "Invalid label_dimension 0"),
        (lambda: heads.MultiHead([heads.RegressionHead()]), "must have name specified"),
        (lambda: contrib.multi_head([]), "Must specify heads"),
        (lambda: v1._regression_head(loss_fn=len), "loss_fn must contain argument: labels"),
    ],
)
def test_wrong_arguments_are_named(make_head, words):
    with pytest.raises(ValueError) as error:
        make_head()
    assert words in str(error.value)
