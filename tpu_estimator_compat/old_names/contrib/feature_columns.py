"""The feature columns of `tf.contrib.layers`, built on `tf.feature_column`.

Variable names are those of `tf.feature_column`; those of `tf.contrib.layers` differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

_columns = tf.feature_column
bucketized_column = _columns.bucketized_column
# The enclosing column has its own combiner, so a sparse column's is ignored.


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: Any = None,
    dtype: tf.DType = tf.float32,
    normalizer: Callable[[tf.Tensor], tf.Tensor] | None = None,
) -> Any:
    """`numeric_column(column_name, shape=(dimension,))`; `normalizer` maps its tensor."""
    return _columns.numeric_column(column_name, (dimension,), default_value, dtype, normalizer)


def sparse_column_with_hash_bucket(
    column_name: str, hash_bucket_size: int, combiner: str = "sum", dtype: tf.DType = tf.string
) -> Any:
    del combiner
    return _columns.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: tf.DType = tf.int64
) -> Any:
    del combiner, dtype
    return _columns.categorical_column_with_identity(column_name, bucket_size)


def sparse_column_with_keys(
    column_name: str,
    keys: Sequence[Any],
    default_value: int = -1,
    combiner: str = "sum",
    dtype: tf.DType = tf.string,
) -> Any:
    del combiner
    return _columns.categorical_column_with_vocabulary_list(column_name, keys, dtype, default_value)


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: tf.DType = tf.string,
) -> Any:
    del combiner
    return _columns.categorical_column_with_vocabulary_file(
        column_name,
        vocabulary_file,
        vocab_size,
        num_oov_buckets,
        None if num_oov_buckets else default_value,
        dtype,
    )


def weighted_sparse_column(
    sparse_id_column: Any, weight_column_name: str, dtype: tf.DType = tf.float32
) -> Any:
    return _columns.weighted_categorical_column(sparse_id_column, weight_column_name, dtype)


def one_hot_column(sparse_id_column: Any) -> Any:
    return _columns.indicator_column(sparse_id_column)


def crossed_column(
    columns: Sequence[Any],
    hash_bucket_size: int,
    combiner: str = "sum",
    ckpt_to_load_from: None = None,
    tensor_name_in_ckpt: None = None,
    hash_key: int | None = None,
) -> Any:
    """`crossed_column`; use `tf.train.init_from_checkpoint` to load its weights."""
    del combiner
    if ckpt_to_load_from or tensor_name_in_ckpt:
        raise ValueError(
            f"A crossed column loads nothing here; got ckpt_to_load_from={ckpt_to_load_from!r}, "
            f"tensor_name_in_ckpt={tensor_name_in_ckpt!r}. Call tf.train.init_from_checkpoint in "
            "model_fn."
        )
    keys = [column.name if hasattr(column, "vocabulary_list") else column for column in columns]
    return _columns.crossed_column(keys, hash_bucket_size, hash_key)


def embedding_column(
    sparse_id_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> Any:
    return _columns.embedding_column(
        sparse_id_column,
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


def shared_embedding_columns(
    sparse_id_columns: Sequence[Any],
    dimension: int,
    combiner: str = "mean",
    shared_embedding_name: str | None = None,
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[Any]:
    """`shared_embedding_columns`, with the argument order of `tf.contrib.layers`."""
    return _columns.shared_embedding_columns(
        sparse_id_columns,
        dimension,
        combiner,
        initializer,
        shared_embedding_name,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


def create_feature_spec_for_parsing(feature_columns: Iterable[Any]) -> dict[str, Any]:
    return _columns.make_parse_example_spec(list(feature_columns))


def input_from_feature_columns(
    columns_to_tensors: dict[str, Any],
    feature_columns: Iterable[Any],
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tf.Tensor:
    """`input_layer` in a variable scope, by default `input_from_feature_columns`."""
    columns = list(feature_columns)
    with tf.variable_scope(scope, default_name="input_from_feature_columns"):
        return _columns.input_layer(columns_to_tensors, columns, weight_collections, trainable)


__all__ = [
    "bucketized_column",
    "create_feature_spec_for_parsing",
    "crossed_column",
    "embedding_column",
    "input_from_feature_columns",
    "one_hot_column",
    "real_valued_column",
    "shared_embedding_columns",
    "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature",
    "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file",
    "weighted_sparse_column",
]
