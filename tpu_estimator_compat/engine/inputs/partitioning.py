"""`TPUConfig.input_partition_dims`: how one replica's tensors are split over its cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.step.plan import Dims


def partition_dims(
    features: Any, labels: Any, config_dims: Sequence[Any], cores_per_replica: int
) -> list[Dims]:
    """The partition counts, per dimension, of each flat tensor of (features, labels).

    Args:
      labels: None where there are none.
      config_dims: `TPUConfig.input_partition_dims`: one structure like features and, optionally,
        one like labels; each leaf is a list of counts, or None for a whole tensor.
    """
    feature_dims = config_dims[0]
    label_dims = config_dims[1] if len(config_dims) == 2 else None
    found = _flat(features, feature_dims, 0, "feature")
    if labels is not None and label_dims is not None:
        found += _flat(labels, label_dims, 1, "label")
    elif labels is not None:
        found += [None] * len(tf.nest.flatten(labels))
    tensors = [*tf.nest.flatten(features), *([] if labels is None else tf.nest.flatten(labels))]
    for tensor, dims in zip(tensors, found, strict=True):
        _check(tensor, dims, cores_per_replica)
    return found


def _flat(tensors: Any, dims: Any, index: int, name: str) -> list[Dims]:
    expected, given = _keys(tensors), _keys(dims)
    if expected != given:
        raise ValueError(
            f"TPUConfig.input_partition_dims[{index}] mismatched {name} keys. Expected {expected}, "
            f"got {given}"
        )
    try:
        return list(tf.__internal__.nest.flatten_up_to(tensors, dims))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"TPUConfig.input_partition_dims[{index}] mismatched the structure of {name}s. "
            f"input_partition_dims[{index}]: {dims}, {name}s: {tensors}. {error}"
        ) from None


def _keys(structure: Any) -> list[str]:
    return sorted(structure) if isinstance(structure, dict) else []


def _check(tensor: tf.Tensor, dims: Dims, cores_per_replica: int) -> None:
    if dims is None:
        return
    if any(count < 1 for count in dims):
        raise ValueError(f"All input partition dims must be >= 1. Got {list(dims)} for {tensor}.")
    product = math.prod(dims)
    if product == 1:
        return
    if product != cores_per_replica:
        raise ValueError(
            "The product of each input partition dim should equal to num_cores_per_replica. "
            f"(dim = {list(dims)}, num_cores_per_replica = {cores_per_replica})"
        )
    if len(dims) != tensor.shape.rank:
        raise ValueError(
            "Input partition dims must have the same number of dimensions as the `Tensor` to be "
            f"partitioned. (tensor shape = {tensor.shape.as_list()}, input partition dims = "
            f"{list(dims)})."
        )


def log_fallback(mode: str) -> None:
    logging.info(
        "No TPU: input_partition_dims has no effect in %s; each replica computes whole tensors.",
        mode,
    )
