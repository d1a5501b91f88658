"""The head of a classifier: one for two classes, or one for more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpu_estimator_compat.canned.heads.base import Head
from tpu_estimator_compat.canned.heads.binary import BinaryClassHead
from tpu_estimator_compat.canned.heads.multi_class import MultiClassHead


def binary_or_multi_class_head(
    n_classes: int,
    weight_column: Any,
    label_vocabulary: Sequence[str] | None,
    loss_reduction: str,
) -> Head:
    """A `BinaryClassHead` for two classes, else a `MultiClassHead`."""
    if n_classes == 2:
        return BinaryClassHead(
            weight_column, label_vocabulary=label_vocabulary, loss_reduction=loss_reduction
        )
    return MultiClassHead(n_classes, weight_column, label_vocabulary, loss_reduction)
