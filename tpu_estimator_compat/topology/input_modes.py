"""The modes of InputPipelineConfig: how often input_fn is called, and for whom."""

from __future__ import annotations

import dataclasses

from tpu_estimator_compat.config import InputPipelineConfig, TPUConfig
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.topology.replicas import Topology


@dataclasses.dataclass(frozen=True)
class Invocation:
    """One call of input_fn.

    Attributes:
      host: 0-based index of the host that calls.
      index: 0-based index of the call among those of all hosts.
    """

    host: int
    index: int


def invocations(mode: str, topology: Topology, tpu_config: TPUConfig | None) -> list[Invocation]:
    """The calls of input_fn that this process makes, host by host.

    Args:
      mode: a `ModeKeys` value.
      topology: the replicas.
      tpu_config: how input is deployed; None off TPU.
    """
    if not topology.tpu_semantics or tpu_config is None:
        return [Invocation(host, host) for host in topology.hosts]
    if is_broadcast(mode, tpu_config):
        return [Invocation(0, 0)]
    if is_per_core(mode, tpu_config):
        share = topology.replicas_per_host
        return [Invocation(host, host * share + i) for host in topology.hosts for i in range(share)]
    if topology.this_host is not None:
        return [Invocation(topology.this_host, topology.this_host)]
    # Where a replica spans hosts, only the host of its first core calls input_fn.
    callers = topology.hosts[: min(topology.num_hosts, topology.num_replicas)]
    return [Invocation(host, index) for index, host in enumerate(callers)]


def is_per_core(mode: str, tpu_config: TPUConfig) -> bool:
    """Whether input_fn is called once per replica."""
    per_shard = InputPipelineConfig.PER_SHARD_V1
    return mode == ModeKeys.TRAIN and tpu_config.per_host_input_for_training == per_shard


def is_per_host_v2(tpu_config: TPUConfig) -> bool:
    """Whether input_fn gives per-replica batches, once per host."""
    return tpu_config.per_host_input_for_training == InputPipelineConfig.PER_HOST_V2


def is_sliced(mode: str, tpu_config: TPUConfig) -> bool:
    """Whether one batch is cut into slices for all replicas of all hosts."""
    sliced = InputPipelineConfig.SLICED
    return mode != ModeKeys.TRAIN and tpu_config.eval_training_input_configuration == sliced


def is_broadcast(mode: str, tpu_config: TPUConfig) -> bool:
    """Whether input_fn is called once in all, for every replica of every host."""
    broadcast = InputPipelineConfig.BROADCAST
    return tpu_config.per_host_input_for_training == broadcast or is_sliced(mode, tpu_config)
