"""The tables of an estimator as a host stage: the interface for other rooms."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tpu_estimator_compat.config import InputPipelineConfig, TPUConfig
from tpu_estimator_compat.config.arguments import check_type
from tpu_estimator_compat.embedding import resolved_spec
from tpu_estimator_compat.embedding.capturing import CapturedTables
from tpu_estimator_compat.embedding.config import EmbeddingConfigSpec
from tpu_estimator_compat.engine.cluster.workers import Workers
from tpu_estimator_compat.engine.step.host_stage import HostStageBuilder


def host_stage(
    spec: EmbeddingConfigSpec,
) -> Callable[[str, int | None, Workers | None], HostStageBuilder]:
    """A function of (mode, batch_size, group) that makes the builder of a mode's host stage."""
    return functools.partial(CapturedTables, resolved_spec.resolve(spec))


def check(spec: Any, tpu_config: TPUConfig, use_tpu: bool, eval_on_tpu: bool) -> None:
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
