"""Which head the classifiers of TensorFlow 2 have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpu_estimator_compat.canned import heads


def binary_or_multi_class_head(
    n_classes: int,
    weight_column: Any,
    label_vocabulary: Sequence[str] | None,
    loss_reduction: Any,
) -> heads.Head:
    """A head for two classes, or one for more.

    Args:
      n_classes: how many labels there are.
      weight_column: name, or numeric column, of the examples' weights.
      label_vocabulary: the labels, if they are strings.
      loss_reduction: how the losses of a batch are joined.
    """
    if n_classes == 2:
        return heads.BinaryClassHead(
            weight_column=weight_column,
            label_vocabulary=label_vocabulary,
            loss_reduction=loss_reduction,
        )
    return heads.MultiClassHead(
        n_classes,
        weight_column=weight_column,
        label_vocabulary=label_vocabulary,
        loss_reduction=loss_reduction,
    )
