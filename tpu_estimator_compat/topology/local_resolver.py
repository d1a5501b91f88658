"""The resolver of scripts that name no TPU, where there is none."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class LocalResolver(tf.distribute.cluster_resolver.ClusterResolver):
    """Stands for no TPU: this machine, with a session of its own.

    Legacy scripts make a `TPUClusterResolver` with an empty name whether or not there is a TPU, and
    pass it to `RunConfig`. In TensorFlow 1 it gave a local session.
    """

    task_type = "worker"
    task_id = 0
    rpc_layer = None
    environment = ""

    def cluster_spec(self) -> None:
        """None: there is no cluster."""
        return None

    def master(self, task_type: Any = None, task_id: Any = None, rpc_layer: Any = None) -> str:
        """The empty string: a session of this process."""
        del task_type, task_id, rpc_layer
        return ""

    def get_master(self) -> str:
        """As `master`."""
        return ""

    def get_job_name(self) -> None:
        """None: there is no job."""
        return None

    def num_accelerators(
        self, task_type: Any = None, task_id: Any = None, config_proto: Any = None
    ) -> dict[str, int]:
        """The GPUs of this machine, as `{"GPU": n}`; it has no TPU."""
        del task_type, task_id, config_proto
        gpus = len(tf.config.list_physical_devices("GPU"))
        return {"GPU": gpus} if gpus else {}
