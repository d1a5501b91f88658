"""Finds a TPU, connects to it, and makes a strategy over its cores.

It was written and tested without a TPU: tests record the calls that it makes to TensorFlow.
"""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.program import eager
from tpu_estimator_compat.spec import ModeKeys

TPUClusterResolver = tf.distribute.cluster_resolver.TPUClusterResolver
Resolver = Any  # a TPUClusterResolver

_ENVIRONMENT = ("TPU_NAME", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "COLAB_TPU_ADDR")

_COMPUTATION_SHAPES = {
    1: [1, 1, 1, 1],
    2: [1, 1, 1, 2],
    4: [1, 2, 1, 2],
    8: [2, 2, 1, 2],
    16: [4, 2, 1, 2],
    32: [4, 4, 1, 2],
    64: [8, 4, 1, 2],
    128: [8, 8, 1, 2],
}
"""Chips in x, y, z and cores per chip of one replica, by its number of cores."""

_strategies: dict[tuple[Any, ...], tf.distribute.TPUStrategy] = {}
_topologies: dict[str, Any] = {}


def find(config: RunConfig, mode: str) -> Resolver | None:
    """The resolver of the TPU that `mode` is to run on; None where there is none.

    Most explicit first: a TPUClusterResolver in the config, its master addresses, the environment,
    TPU cores in this machine.

    Args:
      config: the run configuration.
      mode: a `ModeKeys` value; evaluation has a master of its own.
    """
    cluster = getattr(config, "cluster", None)
    if isinstance(cluster, TPUClusterResolver):
        return cluster
    job = {}
    tpu_config = getattr(config, "tpu_config", None)
    if tpu_config is not None and tpu_config.tpu_job_name:
        job = {"job_name": tpu_config.tpu_job_name}
    master = config.evaluation_master if mode == ModeKeys.EVAL else config.master
    if master and not config.cluster_spec:  # in a cluster, it is this worker's own address
        return _resolver(master, **job)
    return in_environment(**job)


def in_environment(**job: str) -> Resolver | None:
    """The resolver of a TPU that the environment names or this machine has; None without one."""
    if any(os.environ.get(name) for name in _ENVIRONMENT):
        colab = os.environ.get("COLAB_TPU_ADDR")
        return _resolver(f"grpc://{colab}" if colab else None, **job)
    if tf.config.list_physical_devices("TPU") or tf.config.list_physical_devices("TPU_SYSTEM"):
        return _resolver("local")
    return None


def _resolver(address: str | None, **job: str) -> Resolver:
    try:
        return TPUClusterResolver(tpu=address, **job)
    except Exception as error:
        raise _unreachable(address, error) from error


def strategy(
    resolver: Resolver, num_cores_per_replica: int | None = None
) -> tf.distribute.TPUStrategy:
    """The strategy over the cores of a TPU, connected to on first use.

    Args:
      resolver: says where the TPU is.
      num_cores_per_replica: cores that share a replica; None for one.

    Returns:
      One strategy per TPU and number of cores.

    Raises:
      RuntimeError: the TPU cannot be reached, or has no cores.
      ValueError: it has too few cores for a replica.
    """
    key = (_address(resolver), num_cores_per_replica)
    if key not in _strategies:
        topology = initialize(resolver)
        assignment = None
        if num_cores_per_replica:
            assignment = _device_assignment(topology, num_cores_per_replica)
        _strategies[key] = tf.distribute.TPUStrategy(
            resolver, experimental_device_assignment=assignment
        )
        logging.info(
            "Running on the TPU at %s: %d replica(s).",
            _address(resolver) or "this machine",
            _strategies[key].num_replicas_in_sync,
        )
    return _strategies[key]


def initialize(resolver: Resolver) -> Any:
    """Connects to the TPU and initialises it, once per process: doing it again loses variables.

    Returns:
      Its `tf.tpu.experimental.Topology`.

    Raises:
      RuntimeError: it cannot be reached, or has no cores.
    """
    address = _address(resolver)
    if address not in _topologies:
        with eager.eager_mode():
            try:
                tf.config.experimental_connect_to_cluster(resolver)
                topology = tf.tpu.experimental.initialize_tpu_system(resolver)
            except Exception as error:
                raise _unreachable(address, error) from error
        if not topology.num_tasks * topology.num_tpus_per_task:
            raise RuntimeError(
                "Cannot find any TPU cores in the system. Please double check Tensorflow master "
                "address and TPU worker(s). Available devices are "
                f"{tf.config.list_logical_devices()}."
            )
        _topologies[address] = topology
    return _topologies[address]


def _device_assignment(topology: Any, cores_per_replica: int) -> Any:
    cores = topology.num_tasks * topology.num_tpus_per_task
    if cores_per_replica > cores:
        raise ValueError(
            "The num of cores required by the model parallelism, specified by "
            "TPUConfig.num_cores_per_replica, is larger than the total num of TPU cores in the "
            f"system. num_cores_per_replica: {cores_per_replica}, num cores in the system: {cores}"
        )
    return tf.tpu.experimental.DeviceAssignment.build(
        topology,
        computation_shape=_COMPUTATION_SHAPES[cores_per_replica],
        num_replicas=cores // cores_per_replica,
    )


def _address(resolver: Resolver) -> str:
    return resolver.master() or ""


def _unreachable(address: str | None, error: Exception) -> RuntimeError:
    named = address or ", ".join(f"{n}={os.environ[n]}" for n in _ENVIRONMENT if n in os.environ)
    failed = f"Cannot reach the TPU at {named!r}" if named else "Cannot find a TPU in this machine"
    return RuntimeError(
        f"{failed}. Check that it is running and that its address is "
        "right (RunConfig's cluster or master, or TPU_NAME), or train without it: use_tpu=False, "
        f"or no address. {type(error).__name__}: {error}"
    )
