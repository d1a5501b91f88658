"""Where a mode runs: which strategy, how many replicas and hosts, which batch size for whom.

Most explicit first: a strategy in the RunConfig, GPUs, logical CPUs, one device.
"""

from __future__ import annotations

import dataclasses
import functools

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import InputPipelineConfig, RunConfig, TPUConfig
from tpu_estimator_compat.program import eager
from tpu_estimator_compat.spec import ModeKeys


@dataclasses.dataclass(frozen=True)
class Topology:
    """The replicas of one mode.

    Attributes:
      strategy: runs the replicas.
      tpu_semantics: whether the rules of TPU execution hold: per-replica batch sizes, static
        shapes, one return to Python per loop.
      num_hosts: machines that feed the replicas.
    """

    strategy: tf.distribute.Strategy
    tpu_semantics: bool
    num_hosts: int = 1

    @property
    def num_replicas(self) -> int:
        return self.strategy.num_replicas_in_sync

    @property
    def replicas_per_host(self) -> int:
        return self.num_replicas // self.num_hosts


def resolve(config: RunConfig, mode: str, *, tpu_semantics: bool) -> Topology:
    """The topology for `mode`.

    Args:
      config: its `train_distribute` and `eval_distribute` win over what the machine has.
      mode: a `ModeKeys` value.
      tpu_semantics: whether this mode was asked to run on TPU.

    Returns:
      The topology. Without a TPU, TPU execution falls back to the local replicas; one log line says
      so.
    """
    explicit = config.eval_distribute if mode == ModeKeys.EVAL else config.train_distribute
    if explicit is not None and mode != ModeKeys.PREDICT:
        return Topology(explicit, tpu_semantics)
    if not tpu_semantics:
        return Topology(tf.distribute.get_strategy(), False)
    explicit = config.train_distribute  # a TPU evaluates and predicts where it trains
    tpu_config = getattr(config, "tpu_config", None)
    one_core = tpu_config is not None and (
        tpu_config.num_shards == 1 and tpu_config.num_cores_per_replica is None
    )
    if explicit is None or one_core:
        explicit = _local_strategy(1 if one_core else None)
    topology = Topology(explicit, True)
    logging.info(
        "No TPU: running %s with TPU semantics on %d local replica(s) of this machine.",
        mode,
        topology.num_replicas,
    )
    return topology


@functools.cache
def _local_strategy(limit: int | None) -> tf.distribute.Strategy:
    """One replica per GPU, else one per logical CPU."""
    with eager.eager_mode():
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        names = [d.name for d in devices][:limit]
        if len(names) == 1:
            return tf.distribute.get_strategy()
        return tf.distribute.MirroredStrategy(names)


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
        return size // topology.num_hosts

    def for_model_fn(self, mode: str, topology: Topology, tpu_config: TPUConfig) -> int | None:
        """`params['batch_size']` for model_fn: per replica, except where each sees everything."""
        size = self.of(mode)
        whole = is_broadcast(mode, tpu_config) and not is_sliced(mode, tpu_config)
        if not topology.tpu_semantics or size is None or whole:
            return size
        return size // topology.num_replicas

    def check(self, mode: str, topology: Topology, tpu_config: TPUConfig) -> None:
        """Refuses sizes that the replicas cannot share.

        Raises:
          ValueError: no size, or one that is not divisible by the number of replicas; a wrong
            `num_shards`.
        """
        if not topology.tpu_semantics:
            return
        replicas, size = topology.num_replicas, self.of(mode)
        name = {"infer": "predict"}.get(mode, mode)
        if size is None:
            call = {"eval": "evaluate"}.get(name, name)
            raise ValueError(
                f"{name}_batch_size in TPUEstimator constructor cannot be `None` if .{call} is "
                "running on TPU."
            )
        if size % replicas and not is_broadcast(mode, tpu_config):
            raise ValueError(
                f"{name} batch size {size} must be divisible by number of replicas {replicas}"
            )
        shards = tpu_config.num_shards
        if shards is not None and shards != replicas:
            raise ValueError(
                "TPUConfig.num_shards is not set correctly. According to TPU system metadata for "
                f"Tensorflow master (local): num_replicas should be ({replicas}), got ({shards}). "
                "For non-model-parallelism, num_replicas should be the total num of TPU cores in "
                "the system. For model-parallelism, the total number of TPU cores should be "
                "num_cores_per_replica * num_replicas. Please set it accordingly or leave it as "
                "`None`"
            )


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
