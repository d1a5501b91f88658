"""`EmbeddingConfigSpec`: a user's description of the embedding tables of a TPUEstimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tpu_estimator_compat.config import InputPipelineConfig, TPUConfig
from tpu_estimator_compat.config.arguments import check_type
from tpu_estimator_compat.embedding.parameters import SUPPORTED, OptimizationParameters
from tpu_estimator_compat.embedding.tables import FeatureConfig, TableConfig
from tpu_estimator_compat.tf_internals import columns_v1, columns_v2, tpu_columns_v2
from tpu_estimator_compat.tf_internals import tpu_columns as tpu_columns_v1

PARTITION_STRATEGIES = ("div", "mod")

DEPRECATED_TPU_COLUMNS = (
    tpu_columns_v1._TPUEmbeddingColumn,
    tpu_columns_v1._TPUSharedEmbeddingColumn,
)
TPU_COLUMNS = (tpu_columns_v2._TPUEmbeddingColumnV2, tpu_columns_v2._TPUSharedEmbeddingColumnV2)
_PLACED_COLUMNS = (
    tpu_columns_v2._TPUDeviceSpecificEmbeddingColumnV2,
    tpu_columns_v2._TPUSharedDeviceSpecificEmbeddingColumnV2,
)
_PLAIN_COLUMNS = (
    columns_v1._EmbeddingColumn,
    columns_v1._SharedEmbeddingColumn,
    columns_v1._NumericColumn,
    columns_v2.EmbeddingColumn,
    columns_v2.NumericColumn,
)


class _SpecFields(NamedTuple):
    feature_columns: Sequence[Any] | None
    tensor_core_feature_columns: Sequence[Any] | None
    optimization_parameters: OptimizationParameters | None
    clipping_limit: float | None
    pipeline_execution_with_tensor_core: bool
    experimental_gradient_multiplier_fn: Callable[[tf.Tensor], Any] | None
    feature_to_config_dict: Mapping[str, FeatureConfig] | None
    table_to_config_dict: Mapping[str, TableConfig] | None
    partition_strategy: str
    profile_data_directory: str | None


class EmbeddingConfigSpec(_SpecFields):
    """The embedding tables of a TPUEstimator, their features and their optimizers.

    With `use_tpu=True`, model_fn gets rows of the tables in place of the ids in these features. The
    tables' own optimizers apply the gradients that model_fn's optimizer computes with respect to
    the rows.

    Args:
      feature_columns: TPU embedding columns, such as those of
        `tf.compat.v1.tpu.experimental.embedding_column`. Give either them or the two dicts.
      optimization_parameters: the optimizer of tables without an optimizer of their own, such as
        `AdagradParameters(0.1)`.
      clipping_limit: the summed gradients of a row are clipped to this absolute value; None for no
        limit.
      pipeline_execution_with_tensor_core: ignored: a step always sees the updates of the step
        before.
      experimental_gradient_multiplier_fn: takes the global step and returns a factor for all
        gradients of tables; None for 1.
      feature_to_config_dict: feature key to `FeatureConfig`, for every feature of ids.
      table_to_config_dict: table name to `TableConfig`.
      partition_strategy: "div", or "mod" if `use_tpu` and `eval_on_tpu`; has no effect.
      profile_data_directory: ignored: nothing is profiled.

    Attributes:
      tensor_core_feature_columns: the given columns whose tables are model_fn's own variables
        (`embedding_lookup_device="tpu_tensor_core"`); the attribute `feature_columns` has the rest.

    Raises:
      ValueError: both forms, or neither; an unknown partition strategy or optimizer; a feature of
        an unknown table; a limit that is not positive.
      TypeError: a feature column or a config of another type.

    Example:
      >>> spec = EmbeddingConfigSpec(
      ...     feature_to_config_dict={"words": FeatureConfig("vocabulary")},
      ...     table_to_config_dict={"vocabulary": TableConfig(1000, 16)},
      ...     optimization_parameters=AdagradParameters(0.1),
      ... )
      >>> spec.table_to_config_dict["vocabulary"].dimension
      16
    """

    __slots__ = ()

    def __new__(
        cls,
        feature_columns: Sequence[Any] | None = None,
        optimization_parameters: OptimizationParameters | None = None,
        clipping_limit: float | None = None,
        pipeline_execution_with_tensor_core: bool = False,
        experimental_gradient_multiplier_fn: Callable[[tf.Tensor], Any] | None = None,
        feature_to_config_dict: Mapping[str, FeatureConfig] | None = None,
        table_to_config_dict: Mapping[str, TableConfig] | None = None,
        partition_strategy: str = "div",
        profile_data_directory: str | None = None,
    ) -> EmbeddingConfigSpec:
        _check_forms(feature_columns, bool(feature_to_config_dict and table_to_config_dict))
        if partition_strategy not in PARTITION_STRATEGIES:
            raise ValueError(
                f'Invalid partition_strategy {partition_strategy}. Must be one of "mod" or "div".'
            )
        if clipping_limit is not None and not clipping_limit > 0:
            raise ValueError(f"clipping_limit must be a positive number, got {clipping_limit!r}.")
        own: list[Any] | None = None
        of_model: list[Any] | None = None
        if feature_columns:
            _check_columns(feature_columns)
            _check_optimizer(optimization_parameters)
            of_model = [c for c in feature_columns if _is_on_tensor_core(c)]
            own = [c for c in feature_columns if not _is_on_tensor_core(c)]
        else:
            assert feature_to_config_dict is not None
            assert table_to_config_dict is not None
            _check_dicts(feature_to_config_dict, table_to_config_dict)
            if optimization_parameters is not None:
                _check_optimizer(optimization_parameters)
        return super().__new__(
            cls,
            own,
            of_model,
            optimization_parameters,
            clipping_limit,
            pipeline_execution_with_tensor_core,
            experimental_gradient_multiplier_fn,
            feature_to_config_dict,
            table_to_config_dict,
            partition_strategy,
            profile_data_directory,
        )


def _is_on_tensor_core(column: Any) -> bool:
    wanted = tpu_columns_v2.EmbeddingDevice.TPU_TENSOR_CORE
    return isinstance(column, _PLACED_COLUMNS) and column._embedding_lookup_device == wanted


def _check_forms(columns: Sequence[Any] | None, dicts: bool) -> None:
    if bool(columns) == dicts:
        raise ValueError(
            "Exactly one of `feature_columns` and the pair `feature_to_config_dict` and "
            "`table_to_config_dict` must be be specified. Got "
            f"{'both' if dicts else 'neither'}."
        )


def _check_columns(columns: Sequence[Any]) -> None:
    supported = (*_PLAIN_COLUMNS, *DEPRECATED_TPU_COLUMNS, *TPU_COLUMNS)
    for column in columns:
        if not isinstance(column, supported):
            raise TypeError(
                f"All feature columns must be supported types in {supported}. Got {type(column)}"
            )


def _check_optimizer(parameters: Any) -> None:
    if not isinstance(parameters, SUPPORTED):
        raise ValueError(
            "optimization_parameters must be an instance of type "
            f"{tuple(t.__name__ for t in SUPPORTED)}. Got {type(parameters)}."
        )


def _check_dicts(features: Mapping[str, Any], tables: Mapping[str, Any]) -> None:
    for key, feature in features.items():
        if not isinstance(feature, FeatureConfig):
            raise TypeError(
                f"Config for feature {key} must be of type `FeatureConfig`. Got {type(feature)}"
            )
        if feature.table_id not in tables:
            raise ValueError(
                f"Feature {key} refers to table {feature.table_id} which is not in the "
                f"table_to_config_dict. It has {sorted(tables)}."
            )
    for name, table in tables.items():
        if not isinstance(table, TableConfig):
            raise TypeError(
                f"Config for table {name} must be of type `TableConfig`. Got {type(table)}"
            )


def check_allowed(spec: Any, tpu_config: TPUConfig, use_tpu: bool, eval_on_tpu: bool) -> None:
    """Raises for an embedding spec that the estimator's other arguments do not allow."""
    wanted = "an EmbeddingConfigSpec of tf.estimator.tpu.experimental"
    check_type(spec, "embedding_config_spec", EmbeddingConfigSpec, wanted)
    input_mode = tpu_config.per_host_input_for_training
    allowed = (InputPipelineConfig.PER_HOST_V1, InputPipelineConfig.PER_HOST_V2)
    if use_tpu and input_mode not in allowed:
        raise ValueError(
            "Only PER_HOST_V1 and PER_HOST_V2 is supported when using TPU Embedding; got "
            f"{input_mode}. Set TPUConfig.per_host_input_for_training."
        )
    if use_tpu and tpu_config.input_partition_dims is not None:
        raise NotImplementedError(
            "TPUConfig.input_partition_dims and embedding_config_spec: input that tables take "
            "cannot be split over the cores of a replica. Set one of them to None."
        )
    if not (use_tpu and eval_on_tpu) and spec.partition_strategy == "mod":
        raise ValueError(
            "Mod sharding of embedding tables not supported on CPU. Got use_tpu="
            f"{use_tpu} and eval_on_tpu={eval_on_tpu} with partition_strategy='mod'; take 'div'."
        )
