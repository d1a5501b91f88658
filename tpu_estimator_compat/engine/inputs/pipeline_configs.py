"""The values of `InputPipelineConfig`, a class each, and the choice of one for a mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tpu_estimator_compat.config import InputPipelineConfig, TPUConfig
from tpu_estimator_compat.engine.inputs import padding, splitting
from tpu_estimator_compat.engine.inputs.calling import CalledInput, check_is_dataset
from tpu_estimator_compat.engine.inputs.input_mode import (
    Dataset,
    InputMode,
    Invocation,
    Plain,
    TPUInputMode,
)
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.spec import ModeKeys


class PerShardV1(TPUInputMode):
    """Each replica gets the batches of its own input_fn call; in training only."""

    @property
    def calls(self) -> int:
        return self.topology.num_replicas

    def invocations(self) -> list[Invocation]:
        share, hosts = self.topology.replicas_per_host, self.topology.hosts
        return [Invocation(host, host * share + i) for host in hosts for i in range(share)]

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        return dataset


class PerHostV1(TPUInputMode):
    """Each replica gets a slice of each batch of its host's input_fn."""

    @property
    def input_batch_size(self) -> int | None:
        # Where replicas span hosts, only the host of a replica's first core calls input_fn.
        hosts = min(self.topology.num_hosts, self.topology.num_replicas)
        return self.batch_size and self.batch_size // hosts

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        replicas = self.topology.replicas_per_host
        return splitting.split(dataset, replicas, range(replicas), self.batch_axis)


class PerHostV2(TPUInputMode):
    """Replica i of n of a host gets batches i, i+n, i+2n, ... of its input_fn."""

    replicas_span_hosts: ClassVar[bool] = True

    def _check_several_hosts(self) -> None:
        if self.mode == ModeKeys.PREDICT and self.topology.num_replicas != 1:
            super()._check_several_hosts()

    def check_called(self, called: CalledInput) -> None:
        check_is_dataset(
            called,
            "`input_fn` must return a `Dataset` for the PER_HOST_V2 input pipeline configuration.",
        )
        super().check_called(called)

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        if self.mode == ModeKeys.PREDICT:
            return padding.fill_last_step(dataset, self.topology.num_replicas)
        return dataset


class Broadcast(TPUInputMode):
    """Every replica of every host gets the whole batches of one input_fn call."""

    same_for_all: ClassVar[bool] = True

    @property
    def calls(self) -> int:
        return 1

    @property
    def input_batch_size(self) -> int | None:
        return self.batch_size

    def invocations(self) -> list[Invocation]:
        """The one call; every process makes it."""
        return [Invocation(0, 0)]

    def _check_several_hosts(self) -> None:
        """Accepts any number of hosts."""

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        return splitting.copies(dataset, self.topology.replicas_per_host)


class Sliced(Broadcast):
    """Each replica gets a slice of each batch of one input_fn call; outside training only."""

    same_for_all: ClassVar[bool] = False

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        share = self.topology.replicas_per_host
        wanted = range(host * share, (host + 1) * share)
        return splitting.split(dataset, self.topology.num_replicas, wanted, self.batch_axis)


class SlicedPerHostV2(Sliced, PerHostV2):
    """SLICED where training uses PER_HOST_V2, whose checks still apply."""


_Table = dict[int, type[TPUInputMode]]

_IN_TRAINING: _Table = {
    InputPipelineConfig.PER_SHARD_V1: PerShardV1,
    InputPipelineConfig.PER_HOST_V1: PerHostV1,
    InputPipelineConfig.PER_HOST_V2: PerHostV2,
    InputPipelineConfig.BROADCAST: Broadcast,
}
_ELSEWHERE: _Table = {**_IN_TRAINING, InputPipelineConfig.PER_SHARD_V1: PerHostV1}


def choose(
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
