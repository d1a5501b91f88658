"""Chooses the input mode of a `ModeKeys` mode by TPUConfig's `InputPipelineConfig` values."""

from __future__ import annotations

from collections.abc import Sequence

from tpu_estimator_compat.config import InputPipelineConfig, TPUConfig
from tpu_estimator_compat.engine.inputs.modes.base import InputMode, TPUInputMode
from tpu_estimator_compat.engine.inputs.modes.broadcast import Broadcast
from tpu_estimator_compat.engine.inputs.modes.per_host_v1 import PerHostV1
from tpu_estimator_compat.engine.inputs.modes.per_host_v2 import PerHostV2
from tpu_estimator_compat.engine.inputs.modes.per_shard_v1 import PerShardV1
from tpu_estimator_compat.engine.inputs.modes.plain import Plain
from tpu_estimator_compat.engine.inputs.modes.sliced import Sliced, SlicedPerHostV2
from tpu_estimator_compat.engine.topology import Topology
from tpu_estimator_compat.spec import ModeKeys

_Table = dict[int, type[TPUInputMode]]

_IN_TRAINING: _Table = {
    InputPipelineConfig.PER_SHARD_V1: PerShardV1,
    InputPipelineConfig.PER_HOST_V1: PerHostV1,
    InputPipelineConfig.PER_HOST_V2: PerHostV2,
    InputPipelineConfig.BROADCAST: Broadcast,
}
_ELSEWHERE: _Table = {**_IN_TRAINING, InputPipelineConfig.PER_SHARD_V1: PerHostV1}


def resolve(
    mode: str,
    tpu_config: TPUConfig | None,
    topology: Topology,
    batch_size: int | None = None,
    batch_axis: Sequence[int] | None = None,
) -> InputMode:
    """The input mode of `mode`, a `ModeKeys` value; `tpu_config` is None for plain estimators.

    `batch_axis` is as in `InputMode`; PREDICT ignores it.
    """
    sliced = (
        tpu_config is not None
        and mode != ModeKeys.TRAIN
        and tpu_config.eval_training_input_configuration == InputPipelineConfig.SLICED
    )
    if not topology.tpu_semantics or tpu_config is None:
        return Plain(mode, topology, batch_size, batch_axis, sliced)
    table = _IN_TRAINING if mode == ModeKeys.TRAIN else _ELSEWHERE
    kind = table.get(tpu_config.per_host_input_for_training, PerHostV1)
    if sliced:
        kind = SlicedPerHostV2 if kind is PerHostV2 else Sliced
    axis = None if mode == ModeKeys.PREDICT else batch_axis
    return kind(mode, topology, batch_size, axis, tpu_config)


def check_config(tpu_config: TPUConfig) -> None:
    """Raises ValueError for a configuration that no topology allows."""
    per_shard = tpu_config.per_host_input_for_training == InputPipelineConfig.PER_SHARD_V1
    if per_shard and tpu_config.num_cores_per_replica:
        raise ValueError(
            "Model parallelism only supports per host input for training. Please adjust "
            "TPURunconfig.per_host_input_for_training."
        )
