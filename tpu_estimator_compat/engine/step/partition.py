"""Spatial partitioning: splits a replica's input over the cores that share it, on a TPU."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

Dims = Sequence[int] | None


def place(
    values: Sequence[tf.Tensor], dims: Sequence[Dims], strategy: tf.distribute.TPUStrategy
) -> list[tf.Tensor]:
    """Splits or replicates a replica's tensors over its cores; dimensions may be uneven.

    Args:
      values: the tensors, on a replica.
      dims: the result of `partition_dims` for each.
      strategy: the TPU's.
    """
    return [
        strategy.experimental_replicate_to_logical_devices(value)
        if counts is None
        else strategy.experimental_split_to_logical_devices(value, list(counts))
        for value, counts in zip(values, dims, strict=True)
    ]
