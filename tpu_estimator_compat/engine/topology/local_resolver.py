"""The cluster resolver for scripts that name no TPU, on machines without a TPU."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


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
