"""The linear model of feature columns: a weight for each value of a column, and a bias."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.feature_column import feature_column as columns_v1
from tensorflow.python.feature_column import feature_column_v2 as columns_v2
from tensorflow.python.ops import variable_scope, variables

is_v2 = columns_v2.is_feature_column_v2


class LinearModel(NamedTuple):
    """A linear model of features.

    Attributes:
      logits: one column per unit.
      bias: its variable, or the parts of it.
      weights: all other variables, or the parts of them.
    """

    logits: tf.Tensor
    bias: list[Any]
    weights: list[Any]


def check_columns_are_v2(feature_columns: Sequence[Any]) -> None:
    """Refuses columns that only TensorFlow 1's models take.

    Raises:
      ValueError: there is one.
    """
    if not is_v2(feature_columns):
        raise ValueError(
            "Received a feature column from TensorFlow v1, but this is a TensorFlow v2 Estimator. "
            "Please either use v2 feature columns (accessible via tf.feature_column.* in TF 2.x) "
            "with this Estimator, or switch to a v1 Estimator for use with v1 feature columns "
            "(accessible via tf.compat.v1.estimator.* and tf.compat.v1.feature_column.*, "
            "respectively."
        )


def of_v1_columns(
    features: Mapping[str, Any], columns: Sequence[Any], units: int, sparse_combiner: str, name: str
) -> LinearModel:
    """The model of columns among which are some of TensorFlow 1's own.

    Args:
      features: tensors by name.
      columns: categorical or dense ones.
      units: how many logits.
      sparse_combiner: `sum`, `mean` or `sqrtn`: how the values of an example are joined.
      name: of the scope that holds the variables.
    """
    model = columns_v1._LinearModel(
        feature_columns=columns, units=units, sparse_combiner=sparse_combiner, name=name
    )
    logits = model(features)
    by_column = model.cols_to_vars()
    bias = by_column.pop("bias")
    return LinearModel(logits, _parts(bias), _parts(list(by_column.values())))


def of_columns(
    features: Mapping[str, Any], columns: Sequence[Any], units: int, sparse_combiner: str, name: str
) -> LinearModel:
    """The model of columns of `tf.feature_column`; its arguments are those of `of_v1_columns`."""
    columns = _checked(columns)
    state = _ColumnVariables()
    with variable_scope._pure_variable_scope(name):
        weights = [_weights(column, state, units) for column in columns]
        bias = _variable("bias_weights", [units])
    with tf.compat.v1.name_scope(name):
        cache = columns_v2.FeatureTransformationCache(features)
        sums = []
        for column, weight in zip(columns, weights, strict=True):
            with _scope_of(column, tf.compat.v1.name_scope):
                sums.append(
                    columns_v2._create_weighted_sum(column, cache, state, sparse_combiner, weight)
                )
        columns_v2._verify_static_batch_size_equality(sums, columns)
        total = tf.math.add_n(sums, name="weighted_sum_no_bias")
        logits = tf.nn.bias_add(total, bias, name="weighted_sum")
    return LinearModel(logits, _parts(bias), _parts([*state, *weights]))


def _checked(columns: Any) -> list[Any]:
    """Columns in the order of their names."""
    columns = list(columns_v2._normalize_feature_columns(columns))
    for column in columns:
        if not isinstance(column, (columns_v2.DenseColumn, columns_v2.CategoricalColumn)):
            raise ValueError(
                "Items of feature_columns must be either a DenseColumn or CategoricalColumn. "
                f"Given: {column}"
            )
    return columns


def _weights(column: Any, state: _ColumnVariables, units: int) -> Any:
    """A column's weights; before them come the variables that it has of its own."""
    with _scope_of(column, variable_scope._pure_variable_scope):
        column.create_state(state)
        if isinstance(column, columns_v2.CategoricalColumn):
            size = column.num_buckets
        else:
            size = column.variable_shape.num_elements()
        return _variable("weights", [size, units])


def _scope_of(column: Any, scope: Any) -> contextlib.AbstractContextManager[Any]:
    found: contextlib.AbstractContextManager[Any] = scope(
        columns_v2._sanitize_column_name_for_variable_scope(column.name)
    )
    return found


def _variable(name: str, shape: Sequence[int | None]) -> Any:
    return tf.compat.v1.get_variable(
        name, shape, tf.float32, tf.compat.v1.zeros_initializer(), use_resource=True
    )


def _parts(nest: Any) -> list[Any]:
    """All variables in a nest of them; of a partitioned one, its parts."""
    if isinstance(nest, (list, tuple, variables.PartitionedVariable)):
        return [part for each in nest for part in _parts(each)]
    return [nest]


class _ColumnVariables(columns_v2.StateManager):
    """What columns ask for variables and tables of their own, such as embeddings."""

    def __init__(self) -> None:
        self._variables: dict[Any, dict[str, Any]] = collections.defaultdict(dict)
        self._resources: dict[Any, dict[str, Any]] = collections.defaultdict(dict)

    def __iter__(self) -> Iterator[Any]:
        for of_column in self._variables.values():
            yield from of_column.values()

    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Sequence[int],
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        variable = tf.compat.v1.get_variable(
            name,
            shape,
            dtype,
            initializer,
            trainable=trainable,
            use_resource=use_resource,
        )
        self._variables[feature_column][name] = variable
        return variable

    def get_variable(self, feature_column: Any, name: str) -> Any:
        return self._variables[feature_column][name]

    def add_resource(self, feature_column: Any, name: str, resource: Any) -> None:
        self._resources[feature_column][name] = resource

    def has_resource(self, feature_column: Any, name: str) -> bool:
        return name in self._resources[feature_column]

    def get_resource(self, feature_column: Any, name: str) -> Any:
        return self._resources[feature_column][name]
