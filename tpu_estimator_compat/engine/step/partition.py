"""Spatial partitioning: splits a replica's input over the cores that share it, on a TPU."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

Dims = Sequence[int] | None


def place(
    values: Sequence[tf.Tensor], dims: Sequence[Dims], strategy: tf.distribute.TPUStrategy
) -> list[tf.Tensor]:
    """Splits a replica's tensors over its cores by `dims`, which may be uneven; None replicates."""
    return [
        strategy.experimental_replicate_to_logical_devices(value)
        if counts is None
        else strategy.experimental_split_to_logical_devices(value, list(counts))
        for value, counts in zip(values, dims, strict=True)
    ]
