"""Joins the other workers of a TF_CONFIG cluster: one process each, one strategy for all."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging
from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2

from tpu_estimator_compat.config import RunConfig, TaskType
from tpu_estimator_compat.engine.cluster import addresses as cluster_addresses
from tpu_estimator_compat.engine.cluster import rendezvous
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.signals import process_exit
from tpu_estimator_compat.environment import SESSION
from tpu_estimator_compat.tf_internals import context

_JOBS = {TaskType.MASTER: TaskType.CHIEF, TaskType.CHIEF: TaskType.CHIEF, "worker": "worker"}
DEFAULT_WAIT = 7200  # seconds, as in RunConfig
_HEARTBEAT_TIMEOUT = 30  # seconds
_SHORTEST_JOIN, _LONGEST_JOIN = 20, 300  # seconds for present workers to join


def is_cluster(config: RunConfig) -> bool:
    """Whether this process is one of several workers that train together."""
    return config.num_worker_replicas > 1 and config.task_type in _JOBS


def check_no_parameter_servers(config: RunConfig) -> None:
    if config.num_ps_replicas:
        raise ValueError(
            f"TF_CONFIG names {config.num_ps_replicas} parameter server(s), for which "
            f'RunConfig(runtime="{config.runtime}") has no steps. Set runtime="{SESSION}", with '
            "use_tpu=False, or take the job `ps` out of the cluster: the workers then train "
            "together, as under MultiWorkerMirroredStrategy."
        )


def strategy(config: RunConfig) -> tf.distribute.Strategy:
    """The MultiWorkerMirroredStrategy over the workers of `config`; waits for all of them.

    Raises ValueError for an invalid address, RuntimeError if TensorFlow is already in use or some
    workers did not come in time.
    """
    return _joined(
        _jobs(config),
        _JOBS[config.task_type],
        config.task_id,
        config.protocol or "grpc",
        int(config.session_creation_timeout_secs or DEFAULT_WAIT),
    )


def addresses(config: RunConfig) -> tuple[list[str], int]:
    """host:port of all workers, the chief first, and the index of this worker."""
    jobs = dict(_jobs(config))
    everyone = [address for tasks in jobs.values() for address in tasks]
    return everyone, everyone.index(jobs[_JOBS[config.task_type]][config.task_id])


def _jobs(config: RunConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(
        (_JOBS[job], tuple(config.cluster_spec.job_tasks(job)))
        for job in sorted(config.cluster_spec.jobs)
        if job in _JOBS
    )


@functools.cache
def _joined(
    jobs: tuple[tuple[str, tuple[str, ...]], ...],
    task_type: str,
    task_id: int,
    protocol: str,
    timeout_secs: int,
) -> tf.distribute.Strategy:
    if context.context()._context_handle is not None:
        raise RuntimeError(
            "This process cannot join the other workers, because TensorFlow is in use already. "
            "Make the estimator before anything else runs TensorFlow eagerly or lists its devices."
        )
    addresses = {job: list(tasks) for job, tasks in jobs}
    everyone = [address for tasks in addresses.values() for address in tasks]
    index = everyone.index(addresses[task_type][task_id])
    own, others = f"{task_type} {task_id}", f"the other workers of {addresses}"
    with eager.eager_mode(), joining(own, others, everyone, index, timeout_secs):
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(addresses),
            task_type=task_type,
            task_id=task_id,
            num_accelerators={"GPU": len(tf.config.list_physical_devices("GPU"))},
            rpc_layer=protocol,
        )
        _configure_heartbeats(addresses)
        return tf.distribute.MultiWorkerMirroredStrategy(resolver)


@contextlib.contextmanager
def joining(
    own: str, others: str, everyone: Sequence[str], index: int, seconds: int
) -> Iterator[None]:
    """Waits until all workers are present; within, this process joins them.

    If present workers do not join in time, the process ends: no exception can end that wait.

    Args:
      own, others: this process and its cluster, in the words of messages.
      everyone: as `addresses` of `rendezvous.meet`, as is `index`.
      seconds: the longest wait.

    Raises:
      ValueError: an address is invalid.
      RuntimeError: workers did not come in time, or refused each other, or a port is taken.
    """
    cluster_addresses.check(everyone)
    logging.info("%s waits for %s, for %d s at most.", own, others, seconds)
    try:
        rendezvous.meet(everyone, index, seconds)
        limit = max(_SHORTEST_JOIN, min(seconds, _LONGEST_JOIN))
        logging.info(
            "All workers are present and join now. If that takes longer than %d s, this process "
            "ends.",
            limit,
        )
        with process_exit.limited(limit):
            yield
    except (OSError, RuntimeError, tf.errors.OpError) as error:
        raise RuntimeError(
            f"{own} could not join {others} in {seconds} s: {error} Start the script on all of "
            "them with the same cluster in TF_CONFIG, check that their ports are free and can be "
            "reached, and set RunConfig(session_creation_timeout_secs=...) to how long they may "
            "take to start."
        ) from error


def _configure_heartbeats(addresses: dict[str, Any]) -> None:
    """Sets the time without a heartbeat after which a worker counts as lost."""
    leader_job = "chief" if "chief" in addresses else "worker"
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader=f"/job:{leader_job}/replica:0/task:0",
        heartbeat_timeout_in_ms=_HEARTBEAT_TIMEOUT * 1000,
        coordinated_jobs=[
            coordination_config_pb2.CoordinatedJob(name=job, num_tasks=len(tasks))
            for job, tasks in addresses.items()
        ],
    )
