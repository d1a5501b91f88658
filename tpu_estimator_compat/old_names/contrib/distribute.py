"""`tf.contrib.distribute`: strategies under their names in TensorFlow 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.distribute import cross_device_ops, distribute_lib

from tpu_estimator_compat.engine.topology.tpu_strategy import TPUStrategy
from tpu_estimator_compat.old_names.contrib import taken_over

# TensorFlow before 1.12 calls a replica a tower.
_SAME = taken_over(
    globals(),
    {
        tf.distribute: """
            DistributionStrategy=Strategy DistributionStrategyExtended=StrategyExtended
            OneDeviceStrategy ReductionToOneDevice
            ReductionToOneDeviceCrossDeviceOps=ReductionToOneDevice ReplicaContext
            get_distribution_strategy=get_strategy get_loss_reduction get_replica_context
            get_strategy get_tower_context=get_replica_context
            has_distribution_strategy=has_strategy has_strategy in_cross_replica_context
            in_cross_tower_context=in_cross_replica_context
        """,
        tf.tpu.experimental: "initialize_tpu_system",
        cross_device_ops: """
            AllReduceCrossDeviceOps AllReduceCrossTowerOps=AllReduceCrossDeviceOps CrossDeviceOps
        """,
        distribute_lib: """
            get_cross_replica_context get_cross_tower_context=get_cross_replica_context
            require_replica_context
        """,
    },
)


class MirroredStrategy(tf.distribute.MirroredStrategy):
    """`tf.distribute.MirroredStrategy` with the arguments of `tf.contrib.distribute`.

    `num_gpus` and `num_gpus_per_worker` are synonyms. `auto_shard_dataset` is ignored: each worker
    of an estimator shards its own input.
    """

    def __init__(
        self,
        devices: Sequence[str] | None = None,
        num_gpus: int | None = None,
        num_gpus_per_worker: int | None = None,
        cross_device_ops: Any = None,
        auto_shard_dataset: bool = False,
        cross_tower_ops: Any = None,
    ):
        del auto_shard_dataset
        if num_gpus is not None and num_gpus_per_worker is not None:
            raise ValueError("You cannot specify both `num_gpus` and `num_gpus_per_worker`.")
        gpus = num_gpus_per_worker if num_gpus is None else num_gpus
        if gpus is not None and devices is not None:
            raise ValueError("Must only specify one of `devices` and `num_gpus`.")
        if gpus is not None:
            devices = [f"/device:GPU:{i}" for i in range(gpus)] or ["/device:CPU:0"]
        super().__init__(devices, cross_device_ops or cross_tower_ops)


class CollectiveAllReduceStrategy(tf.distribute.experimental.MultiWorkerMirroredStrategy):
    """`tf.distribute.experimental.MultiWorkerMirroredStrategy`, on all GPUs of each worker.

    `num_gpus_per_worker` is ignored; hide GPUs with CUDA_VISIBLE_DEVICES.
    """

    def __init__(self, num_gpus_per_worker: int = 0, communication: Any = None):
        del num_gpus_per_worker
        super().__init__(*([communication] if communication is not None else []))


class ParameterServerStrategy(tf.distribute.experimental.ParameterServerStrategy):
    """`tf.distribute.experimental.ParameterServerStrategy` of TF1; sees all GPUs of each worker."""

    def __init__(self, num_gpus_per_worker: int = 0):
        del num_gpus_per_worker
        super().__init__()


__all__ = [
    *_SAME,
    "CollectiveAllReduceStrategy",
    "MirroredStrategy",
    "ParameterServerStrategy",
    "TPUStrategy",
]
