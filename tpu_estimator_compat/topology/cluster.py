"""Joins the other workers of a TF_CONFIG cluster: one process each, one strategy over all."""

from __future__ import annotations

import functools
import time
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging
from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2
from tensorflow.python.eager import context

from tpu_estimator_compat.config import RunConfig, TaskType

_JOBS = {TaskType.MASTER: TaskType.CHIEF, TaskType.CHIEF: TaskType.CHIEF, "worker": "worker"}
_DEFAULT_WAIT = 7200  # seconds, as RunConfig has it
_HEARTBEAT_TIMEOUT = 30  # seconds without a sign of life after which a worker counts as lost


def is_cluster(config: RunConfig) -> bool:
    """Whether this process is one of several workers that train together."""
    return config.num_worker_replicas > 1 and config.task_type in _JOBS


def check_no_parameter_servers(config: RunConfig) -> None:
    """Raises ValueError where the cluster has parameter servers."""
    if config.num_ps_replicas:
        raise ValueError(
            f"TF_CONFIG names {config.num_ps_replicas} parameter server(s). Training on parameter "
            "servers is not supported: its steps are not synchronous, and they need a session "
            "against a remote server. Take the job `ps` out of the cluster; the workers then train "
            "together, as under MultiWorkerMirroredStrategy."
        )


def strategy(config: RunConfig) -> tf.distribute.Strategy:
    """A MultiWorkerMirroredStrategy over the workers of `config`; waits for all of them.

    Args:
      config: its cluster, task, `protocol` and `session_creation_timeout_secs` say whom to wait for
        and how long.

    Returns:
      The strategy, the same one in every call.

    Raises:
      RuntimeError: TensorFlow was used before, or not all workers have come in time.
    """
    jobs = tuple(
        (_JOBS[job], tuple(config.cluster_spec.job_tasks(job)))
        for job in sorted(config.cluster_spec.jobs)
        if job in _JOBS
    )
    return _joined(
        jobs,
        _JOBS[config.task_type],
        config.task_id,
        config.protocol or "grpc",
        int(config.session_creation_timeout_secs or _DEFAULT_WAIT),
    )


@functools.cache
def _joined(
    jobs: tuple[tuple[str, tuple[str, ...]], ...],
    task_type: str,
    task_id: int,
    protocol: str,
    timeout_secs: int,
) -> tf.distribute.Strategy:
    addresses = {job: list(tasks) for job, tasks in jobs}
    logging.info(
        "%s %d waits for the other workers of %s, for %d s at most.",
        task_type,
        task_id,
        addresses,
        timeout_secs,
    )
    started = time.monotonic()
    try:
        _configure_waiting(addresses, timeout_secs)
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(addresses),
            task_type=task_type,
            task_id=task_id,
            num_accelerators={"GPU": len(tf.config.list_physical_devices("GPU"))},
            rpc_layer=protocol,
        )
        return tf.distribute.MultiWorkerMirroredStrategy(resolver)
    except RuntimeError as error:  # "Collective ops must be configured at program startup"
        raise RuntimeError(
            "This process cannot join the other workers, because TensorFlow is in use already: "
            f"{error}. Make the estimator before anything else that runs TensorFlow eagerly."
        ) from error
    except tf.errors.OpError as error:
        raise RuntimeError(
            f"{task_type} {task_id} could not join the other workers of {addresses} in "
            f"{time.monotonic() - started:.0f} s. Start the script on all of them with the same "
            "cluster in TF_CONFIG, check that their ports are free and can be reached, and set "
            "RunConfig(session_creation_timeout_secs=...) to how long they may take to start. "
            f"{error.message}"
        ) from error


def _configure_waiting(addresses: dict[str, Any], timeout_secs: int) -> None:
    """Says how long to wait for workers; without it, TensorFlow waits for an hour."""
    if context.context()._context_handle is not None:
        return  # joining will fail, and say why
    leader_job = "chief" if "chief" in addresses else "worker"
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader=f"/job:{leader_job}/replica:0/task:0",
        cluster_register_timeout_in_ms=timeout_secs * 1000,
        heartbeat_timeout_in_ms=_HEARTBEAT_TIMEOUT * 1000,
        coordinated_jobs=[
            coordination_config_pb2.CoordinatedJob(name=job, num_tasks=len(tasks))
            for job, tasks in addresses.items()
        ],
    )
