"""This machine in place of a TPU: its replicas, one per GPU or logical CPU, and its resolver."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.functions import eager


@functools.cache
def strategy(
    limit: int | None = None, cores_per_replica: int | None = None
) -> tf.distribute.Strategy:
    """A strategy over at most `limit` devices of this machine, one per replica.

    `cores_per_replica` divides the number of devices, as on a TPU; at least one replica is left.
    """
    with eager.eager_mode():
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        # In a cluster the list has the other workers' devices too, by full names.
        host = tf.constant(0).device.partition("/device:")[0]
        names = [d.name for d in devices if d.name.startswith((host, "/device:"))]
        names = names[: max(1, len(names) // (cores_per_replica or 1))][:limit]
        if len(names) == 1:
            return tf.distribute.get_strategy()
        return tf.distribute.MirroredStrategy(names)


def split_cpu(count: int) -> None:
    """Splits the CPU into logical devices, as `run --logical-cpus` does.

    Raises RuntimeError once TensorFlow has made its devices.
    """
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * count
    tf.config.set_logical_device_configuration(cpu, parts)


def count_logical_cpus() -> int:
    """The number of TensorFlow's logical CPUs, even before they exist; initializes no device."""
    cpus = tf.config.list_physical_devices("CPU")
    return sum(len(tf.config.get_logical_device_configuration(cpu) or [cpu]) for cpu in cpus)


class LocalResolver(tf.distribute.cluster_resolver.ClusterResolver):
    """A cluster resolver that has no TPU and stands for this process.

    Legacy scripts make a `TPUClusterResolver` with or without a TPU, and pass it to `RunConfig`.
    With an empty name TensorFlow 1 gave a local session; without a name it raised ValueError, which
    scripts caught to detect a TPU. Here `cluster_spec` raises it, and `if resolver:` is false.

    Args:
      named: whether the script gave a name, even an empty one.
    """

    task_type = "worker"
    task_id = 0
    rpc_layer = None
    environment = ""

    def __init__(self, named: bool = True) -> None:
        self._named = named

    def __bool__(self) -> bool:
        return False

    def cluster_spec(self) -> None:
        """None: there is no cluster. Raises ValueError where the script gave no name."""
        if not self._named:
            raise ValueError(
                "Please provide a TPU Name to connect to. There is no TPU here: none is named by "
                "an argument or the environment, and this machine has none."
            )

    def master(self, task_type: Any = None, task_id: Any = None, rpc_layer: Any = None) -> str:
        """The empty string: a session of this process."""
        del task_type, task_id, rpc_layer
        return ""

    def get_master(self) -> str:
        return ""

    def get_job_name(self) -> None:
        return None

    def num_accelerators(
        self, task_type: Any = None, task_id: Any = None, config_proto: Any = None
    ) -> dict[str, int]:
        """The GPUs of this machine, as `{"GPU": n}`; it has no TPU."""
        del task_type, task_id, config_proto
        gpus = len(tf.config.list_physical_devices("GPU"))
        return {"GPU": gpus} if gpus else {}
