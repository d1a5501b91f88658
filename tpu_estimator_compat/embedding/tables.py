"""Embedding tables and the features that look ids up in them, as configurations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tpu_estimator_compat.embedding.parameters import OptimizationParameters

COMBINERS = ("mean", "sum", "sqrtn", None)


class _TableFields(NamedTuple):
    vocabulary_size: int
    dimension: int
    initializer: Callable[..., Any]
    combiner: str | None
    hot_id_replication: bool
    learning_rate: float | None
    learning_rate_fn: Callable[[Any], Any] | None
    optimization_parameters: OptimizationParameters | None


class TableConfig(_TableFields):
    """An embedding table.

    Args:
      vocabulary_size: the number of rows; ids are 0 to `vocabulary_size - 1`.
      dimension: the number of columns.
      initializer: as for `tf.compat.v1.get_variable`. None for a truncated normal distribution with
        standard deviation `1/sqrt(dimension)`.
      combiner: "mean", "sum" or "sqrtn" combines the ids of an example; None if features have
        exactly one id.
      hot_id_replication: accepted; a table has one copy.
      learning_rate: the table's rate; None for `learning_rate_fn` or the optimizer's rate.
      learning_rate_fn: takes the global step and returns the table's learning rate.
      optimization_parameters: the table's own optimizer; None for the spec's.

    Raises:
      ValueError: a size below 1, an initializer that is not callable, an unknown combiner, both
        learning_rate and learning_rate_fn, or an optimizer of another type.

    Example:
      >>> TableConfig(vocabulary_size=1000, dimension=16, combiner="sum").combiner
      'sum'
    """

    __slots__ = ()

    def __new__(
        cls,
        vocabulary_size: int,
        dimension: int,
        initializer: Callable[..., Any] | None = None,
        combiner: str | None = "mean",
        hot_id_replication: bool = False,
        learning_rate: float | None = None,
        learning_rate_fn: Callable[[Any], Any] | None = None,
        optimization_parameters: OptimizationParameters | None = None,
    ) -> TableConfig:
        if not isinstance(vocabulary_size, int) or vocabulary_size < 1:
            raise ValueError(f"vocabulary_size must >= 1. Received: {vocabulary_size}.")
        if not isinstance(dimension, int) or dimension < 1:
            raise ValueError(f"dimension must be a positive int. Received: {dimension}.")
        if initializer is not None and not callable(initializer):
            raise ValueError(f"initializer must be callable if specified. Received: {initializer}.")
        if combiner not in COMBINERS:
            raise ValueError(
                f'combiner must be "mean", "sum", "sqrtn" or None. Received: {combiner}.'
            )
        if learning_rate is not None and learning_rate_fn is not None:
            raise ValueError(
                "At most one of learning_rate and learning_rate_fn can be given. Received: "
                f"{learning_rate} and {learning_rate_fn}."
            )
        if optimization_parameters is not None and not isinstance(
            optimization_parameters, OptimizationParameters
        ):
            raise ValueError(
                "optimization_parameters must be one such as AdagradParameters(0.1). Received: "
                f"{optimization_parameters!r}."
            )
        return super().__new__(
            cls,
            vocabulary_size,
            dimension,
            initializer or default_initializer(dimension),
            combiner,
            hot_id_replication,
            learning_rate,
            learning_rate_fn,
            optimization_parameters,
        )


def default_initializer(dimension: int) -> Callable[..., Any]:
    return tf.compat.v1.truncated_normal_initializer(mean=0.0, stddev=1 / math.sqrt(dimension))


class _FeatureFields(NamedTuple):
    table_id: str
    max_sequence_length: int
    weight_key: str | None


class FeatureConfig(_FeatureFields):
    """A feature whose ids are looked up in a table.

    Args:
      table_id: key of the table in `table_to_config_dict`.
      max_sequence_length: 0 to combine the ids of an example; n > 0 to look up the first n ids one
        by one, in order.
      weight_key: key of the feature that holds the ids' weights; None for weights of 1.

    Raises:
      ValueError: `max_sequence_length` is negative or not an int.

    Example:
      >>> FeatureConfig("vocabulary", max_sequence_length=20).max_sequence_length
      20
    """

    __slots__ = ()

    def __new__(
        cls, table_id: str, max_sequence_length: int = 0, weight_key: str | None = None
    ) -> FeatureConfig:
        if not isinstance(max_sequence_length, int) or max_sequence_length < 0:
            raise ValueError(
                f"max_sequence_length must be zero or a positive int, got {max_sequence_length}."
            )
        return super().__new__(cls, table_id, max_sequence_length, weight_key)
