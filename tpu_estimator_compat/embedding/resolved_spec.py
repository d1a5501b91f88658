"""Converts both forms of an `EmbeddingConfigSpec` to one value: tables, features, optimizers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.embedding.config import (
    DEPRECATED_TPU_COLUMNS,
    TPU_COLUMNS,
    EmbeddingConfigSpec,
)
from tpu_estimator_compat.embedding.parameters import OptimizationParameters
from tpu_estimator_compat.embedding.tables import FeatureConfig, TableConfig, default_initializer

LearningRate = float | Callable[[tf.Tensor], Any]
_COLUMN_PREFIX = "tbl_"  # prefix of the names of tables that columns describe


@dataclasses.dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
      name: the table's name in messages.
      column_key: variable name by which feature columns know the table; None if the variable has
        the table's name.
      parameters: the optimizer; None if the spec names none.
      learning_rate: a number, or a function of the global step; None without an optimizer.
      features: sorted keys of the features that look ids up in the table.
    """

    name: str
    config: TableConfig
    column_key: str | None
    parameters: OptimizationParameters | None
    learning_rate: LearningRate | None
    features: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Embedding:
    """All tables of an estimator, sorted by name, and their features, sorted by key.

    Attributes:
      tensor_core_columns: columns whose tables are model_fn's own variables.
      clipping_limit: largest absolute value of a row's summed gradients; None for no limit.
      gradient_multiplier: takes the global step, returns a factor of gradients; None for 1.
    """

    tables: Mapping[str, Table]
    features: Mapping[str, FeatureConfig]
    tensor_core_columns: Sequence[Any] = ()
    clipping_limit: float | None = None
    gradient_multiplier: Callable[[tf.Tensor], Any] | None = None

    def check_optimizers(self) -> None:
        """Raises ValueError if a table has no optimizer: training needs one."""
        missing = [name for name, table in self.tables.items() if table.parameters is None]
        if missing:
            raise ValueError(
                f"`optimization_parameters` is missing: the tables {missing} have no optimizer of "
                "their own. Give EmbeddingConfigSpec or their TableConfig one, such as "
                "AdagradParameters(0.1)."
            )


def resolve(spec: EmbeddingConfigSpec) -> Embedding:
    if spec.feature_columns is None:
        assert spec.table_to_config_dict is not None
        assert spec.feature_to_config_dict is not None
        configs, features = dict(spec.table_to_config_dict), dict(spec.feature_to_config_dict)
        column_keys: dict[str, str] = {}
    else:
        configs, features, column_keys = _of_columns(spec.feature_columns)
    tables = {}
    for name in sorted(configs):
        users = tuple(sorted(key for key, f in features.items() if f.table_id == name))
        if not users:
            raise ValueError(
                "`table_to_config_dict` specifies a table that is not used in "
                f"`feature_to_config_dict`: {name}. Leave it out, or give it a feature."
            )
        config = configs[name]
        parameters = config.optimization_parameters or spec.optimization_parameters
        tables[name] = Table(
            name, config, column_keys.get(name), parameters, _rate(config, parameters), users
        )
    return Embedding(
        tables,
        {key: features[key] for key in sorted(features)},
        tuple(spec.tensor_core_feature_columns or ()),
        spec.clipping_limit,
        spec.experimental_gradient_multiplier_fn,
    )


def _rate(config: TableConfig, parameters: OptimizationParameters | None) -> LearningRate | None:
    if config.learning_rate is not None:
        return config.learning_rate
    if config.learning_rate_fn is not None:
        return config.learning_rate_fn
    return None if parameters is None else parameters.learning_rate


def _of_columns(
    columns: Sequence[Any],
) -> tuple[dict[str, TableConfig], dict[str, FeatureConfig], dict[str, str]]:
    """Table name to config, feature key to config, and table name to variable name."""
    tables: dict[str, TableConfig] = {}
    features: dict[str, FeatureConfig] = {}
    column_keys: dict[str, str] = {}
    for column in columns:
        _check_kind(column)
        key, variable = column.get_feature_key_name(), column.get_embedding_var_name()
        if key in features:
            raise ValueError(
                f"Feature column {key} is used with multiple embeddings and this is not supported."
                " Give input_fn's feature a second key."
            )
        name = _COLUMN_PREFIX + variable
        column_keys[name] = variable
        features[key] = FeatureConfig(
            name, column.get_max_sequence_length(), column.get_weight_key_name()
        )
        rows, dimension = column.get_embedding_table_size()
        found = TableConfig(
            rows,
            dimension,
            column.get_initializer() or default_initializer(dimension),
            column.get_combiner(),
            learning_rate_fn=column.get_learning_rate_fn(),
        )
        _check_same(name, tables.setdefault(name, found), found)
    return tables, features, column_keys


def _check_kind(column: Any) -> None:
    if not isinstance(column, (*TPU_COLUMNS, *DEPRECATED_TPU_COLUMNS)):
        raise TypeError(
            f"Unsupported feature column {type(column)}. Supported types are {TPU_COLUMNS}. Give "
            "EmbeddingConfigSpec the TPU embedding columns only, and model_fn the others."
        )
    if isinstance(column, DEPRECATED_TPU_COLUMNS):
        logging.warning(
            "Columns of type %s are deprecated. Supported types are %s.", type(column), TPU_COLUMNS
        )


def _check_same(name: str, first: TableConfig, other: TableConfig) -> None:
    sizes = [(t.vocabulary_size, t.dimension, t.combiner) for t in (first, other)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"Two feature columns describe the table {name} in two ways: rows, dimension and "
            f"combiner are {sizes[0]} and {sizes[1]}. Give their categorical columns different "
            "keys."
        )
