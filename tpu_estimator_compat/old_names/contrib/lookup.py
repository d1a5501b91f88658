"""`tf.contrib.lookup`: tables from files and tensors, built on `tf.lookup`."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import lookup_ops

from tpu_estimator_compat.old_names.contrib import taken_over

_SAME = taken_over(
    globals(),
    {
        lookup_ops: """
            FastHashSpec HasherSpec IdTableWithHashBuckets InitializableLookupTableBase
            KeyValueTensorInitializer LookupInterface MutableDenseHashTable=DenseHashTable
            MutableHashTable StrongHashSpec TableInitializerBase TextFileIdTableInitializer
            TextFileIndex TextFileInitializer TextFileStringTableInitializer index_table_from_file
            index_to_string_table_from_file string_to_index_table_from_file=index_table_from_file
        """,
    },
)


class HashTable(lookup_ops.StaticHashTableV1):
    """`StaticHashTableV1`; `shared_name` is ignored: a table belongs to its graph."""

    def __init__(
        self, initializer: Any, default_value: Any, shared_name: Any = None, name: str | None = None
    ):
        del shared_name
        super().__init__(initializer, default_value, name)


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = lookup_ops.FastHashSpec,
    dtype: tf.DType = tf.string,
    name: str | None = None,
) -> Any:
    """`lookup_ops.index_table_from_tensor` with the old name of its first argument."""
    return lookup_ops.index_table_from_tensor(
        mapping, num_oov_buckets, default_value, hasher_spec, dtype, name
    )


def index_to_string_table_from_tensor(
    mapping: Any, default_value: str = "UNK", name: str | None = None
) -> Any:
    """`lookup_ops.index_to_string_table_from_tensor` with the old name of its first argument."""
    return lookup_ops.index_to_string_table_from_tensor(mapping, default_value, name)


string_to_index_table_from_tensor = index_table_from_tensor


def string_to_index(
    tensor: tf.Tensor, mapping: Any, default_value: int = -1, name: str | None = None
) -> tf.Tensor:
    """The index in `mapping` of each string; initialize tables before running it."""
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


def index_to_string(
    tensor: tf.Tensor, mapping: Any, default_value: str = "UNK", name: str | None = None
) -> tf.Tensor:
    """The string of `mapping` at each index; initialize tables before running it."""
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)


__all__ = [
    *_SAME,
    "HashTable",
    "index_table_from_tensor",
    "index_to_string",
    "index_to_string_table_from_tensor",
    "string_to_index",
    "string_to_index_table_from_tensor",
]
