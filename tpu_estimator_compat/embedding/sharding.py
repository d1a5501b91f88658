"""Initializers of a machine's rows of a table, from the initializer of the whole table."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.state.shards import Shard
from tpu_estimator_compat.tf_internals import DEFAULT_GRAPH_SEED, _PartitionInfo, init_ops

Initializer = Callable[..., Any]


def initializer(given: Any, shard: Shard) -> Initializer:
    """An initializer of a shard, for `tf.compat.v1.get_variable`.

    As for partitioned variables in TensorFlow 1, an initializer (or initializer class) that takes
    `partition_info` is called with the shape and the offset of the shard. Any other initializer
    makes all rows, of which the shard's are kept; meanwhile it needs the memory of the whole table.
    """
    made: Any = given() if inspect.isclass(given) else given
    # A constant array has the values of the whole table.
    whole = isinstance(made, init_ops.Constant) and np.ndim(made.value) > 0

    def of_rows(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> tf.Tensor:
        del partition_info  # None: the variable is not a partition in this graph
        if whole or "partition_info" not in inspect.signature(made).parameters:
            values = tf.convert_to_tensor(made(list(shard.shape), dtype=dtype), dtype)
        else:
            info = _PartitionInfo(list(shard.shape), shard.slice_info.var_offset)
            with _seed_of(shard):
                values = tf.convert_to_tensor(made(shape, dtype=dtype, partition_info=info), dtype)
        if tuple(values.shape.as_list()) == shard.shape != tuple(shape):
            return values[shard.first : shard.first + shard.rows]
        return values

    return of_rows


@contextlib.contextmanager
def _seed_of(shard: Shard) -> Iterator[None]:
    """Adds the index of a shard's first row to the graph's seed: machines draw different values."""
    graph = tf.compat.v1.get_default_graph()
    before = graph.seed
    if shard.first:
        graph.seed = (DEFAULT_GRAPH_SEED if before is None else before) + shard.first
    try:
        yield
    finally:
        graph.seed = before
