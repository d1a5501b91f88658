"""Which batch size an input_fn and a model_fn are told, and which sizes cannot be shared."""

from __future__ import annotations

import dataclasses

from tpu_estimator_compat.config import TPUConfig
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.topology.input_modes import (
    is_broadcast,
    is_per_core,
    is_per_host_v2,
    is_sliced,
)
from tpu_estimator_compat.topology.replicas import Topology

_CALLS = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "evaluate", ModeKeys.PREDICT: "predict"}


@dataclasses.dataclass(frozen=True)
class BatchSizes:
    """Global batch sizes of a TPUEstimator, by mode; any may be None.

    The shares follow the reference document of TPUConfig.
    """

    train: int | None
    eval: int | None
    predict: int | None

    def of(self, mode: str) -> int | None:
        """The global batch size of `mode`."""
        sizes = {
            ModeKeys.TRAIN: self.train,
            ModeKeys.EVAL: self.eval,
            ModeKeys.PREDICT: self.predict,
        }
        return sizes[mode]

    def for_input_fn(self, mode: str, topology: Topology, tpu_config: TPUConfig) -> int | None:
        """`params['batch_size']` for input_fn: per host, per replica, or the whole batch."""
        size = self.of(mode)
        if not topology.tpu_semantics or size is None or is_broadcast(mode, tpu_config):
            return size
        if is_per_core(mode, tpu_config) or is_per_host_v2(tpu_config):
            return size // topology.num_replicas
        # Where a replica spans hosts, a host gives whole batches of replicas.
        return size // min(topology.num_hosts, topology.num_replicas)

    def for_model_fn(self, mode: str, topology: Topology, tpu_config: TPUConfig) -> int | None:
        """`params['batch_size']` for model_fn: per replica, except where each sees everything."""
        size = self.of(mode)
        whole = is_broadcast(mode, tpu_config) and not is_sliced(mode, tpu_config)
        if not topology.tpu_semantics or size is None or whole:
            return size
        return size // topology.num_replicas

    def check(self, mode: str, topology: Topology, tpu_config: TPUConfig) -> None:
        """Refuses sizes that the replicas cannot share, and modes that hosts cannot.

        Raises:
          ValueError: no size, or one that is not divisible by the number of replicas or hosts; a
            wrong `num_shards`; an input mode that several hosts cannot evaluate or predict with, or
            that cannot feed replicas that span hosts.
        """
        if not topology.tpu_semantics:
            return
        self._check_size(mode, topology, tpu_config)
        _check_num_shards(topology, tpu_config)
        _check_cores_of_host(topology, tpu_config)
        if mode != ModeKeys.TRAIN and topology.num_hosts != 1:
            _check_several_hosts(mode, topology, tpu_config)

    def _check_size(self, mode: str, topology: Topology, tpu_config: TPUConfig) -> None:
        replicas, size = topology.num_replicas, self.of(mode)
        name = {"infer": "predict"}.get(mode, mode)
        if size is None:
            raise ValueError(
                f"{name}_batch_size in TPUEstimator constructor cannot be `None` if "
                f".{_CALLS[mode]} is running on TPU."
            )
        whole = is_broadcast(mode, tpu_config) and not is_sliced(mode, tpu_config)
        if size % replicas and not whole:
            raise ValueError(
                f"{name} batch size {size} must be divisible by number of replicas {replicas}"
            )


def _check_num_shards(topology: Topology, tpu_config: TPUConfig) -> None:
    replicas, shards = topology.num_replicas, tpu_config.num_shards
    if shards is not None and shards != replicas:
        raise ValueError(
            "TPUConfig.num_shards is not set correctly. According to TPU system metadata for "
            f"Tensorflow master (local): num_replicas should be ({replicas}), got ({shards}). "
            "For non-model-parallelism, num_replicas should be the total num of TPU cores in "
            "the system. For model-parallelism, the total number of TPU cores should be "
            "num_cores_per_replica * num_replicas. Please set it accordingly or leave it as "
            "`None`"
        )


def _check_cores_of_host(topology: Topology, tpu_config: TPUConfig) -> None:
    cores = tpu_config.num_cores_per_replica
    if not cores or is_per_host_v2(tpu_config):
        return
    of_host = cores * topology.num_replicas // topology.num_hosts
    if cores > of_host:
        raise ValueError(
            "Except the PER_HOST_V2 mode, the num of cores required by model parallelism specified "
            "by TPUConfig.num_cores_per_replica should be less than or equal to the "
            f"num_cores_per_host. num_cores_per_replica: {cores}, num_cores_per_host: {of_host}"
        )


def _check_several_hosts(mode: str, topology: Topology, tpu_config: TPUConfig) -> None:
    per_host_v2 = is_per_host_v2(tpu_config)
    if mode == ModeKeys.PREDICT:
        condition = "PER_HOST_V2 mode with num_replicas=1"
        per_host_v2 = per_host_v2 and topology.num_replicas == 1
    else:
        condition = "PER_HOST_V2 mode"
    if per_host_v2 or is_broadcast(mode, tpu_config):
        return
    raise ValueError(
        f"TPUEstimator.{_CALLS[mode]} is only supported under three conditions: 1. num_hosts=1; "
        f"2. BROADCAST mode; 3. {condition}. mode: {tpu_config.per_host_input_for_training}; "
        f"num_hosts: {topology.num_hosts}; num_replicas: {topology.num_replicas}"
    )
