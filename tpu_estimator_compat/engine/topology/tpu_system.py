"""Finds a TPU, connects to it, and makes a strategy over its cores.

`tests/tpu_sim` runs it with TensorFlow's own TPU code on logical CPUs; it never ran on a TPU.
"""

from __future__ import annotations

import functools
import glob
import importlib
import os
import pathlib
import socket
import time
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.topology.computation_shapes import computation_shape
from tpu_estimator_compat.spec import ModeKeys

TPUClusterResolver = tf.distribute.cluster_resolver.TPUClusterResolver
Resolver = Any  # a TPUClusterResolver

_ENVIRONMENT = ("TPU_NAME", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "COLAB_TPU_ADDR")

_PCI_NUMBERS = {(0x1AE0, device) for device in (0x27, 0x5E, 0x62, 0x63, 0x6F, 0x76)}
"""PCI vendor and device ids of v2 and v3, v4, v5p, v5e, v6e and tpu7x, as in JAX."""

_CONNECTION_SECONDS = 20.0  # for all hosts together
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")  # through which gRPC would connect

_strategies: dict[tuple[Any, ...], tf.distribute.TPUStrategy] = {}
_topologies: dict[str, Any] = {}


def find(config: RunConfig, mode: str) -> Resolver | None:
    """The resolver of the TPU for `mode`, a `ModeKeys` value; None without a TPU.

    Most explicit first: a TPUClusterResolver in the config, its master addresses (evaluation has
    its own), the environment, TPU cores in this machine.
    """
    cluster = getattr(config, "cluster", None)
    if isinstance(cluster, TPUClusterResolver):
        return cluster
    job = {}
    tpu_config = getattr(config, "tpu_config", None)
    if tpu_config is not None and tpu_config.tpu_job_name:
        job = {"job_name": tpu_config.tpu_job_name}
    if master := _master(config, mode):
        return _resolver(master, **job)
    return in_environment(**job)


def is_seen(config: RunConfig, mode: str) -> bool:
    """Whether `find` would find a TPU, as far as known without connecting to it."""
    named = isinstance(getattr(config, "cluster", None), TPUClusterResolver)
    named |= bool(_master(config, mode)) or any(map(os.environ.get, _ENVIRONMENT))
    return named or bool(tf.config.list_physical_devices("TPU"))


def _master(config: RunConfig, mode: str) -> str | None:
    """The TPU's address in the config; None in a cluster, where it is this worker's own address.

    "local", like "", is a session in this process, and names no TPU.
    """
    master = config.evaluation_master if mode == ModeKeys.EVAL else config.master
    return master if master not in ("", "local") and not config.cluster_spec else None


def in_environment(**job: str) -> Resolver | None:
    """The resolver of a TPU that the environment names or this machine has; None without one."""
    if any(os.environ.get(name) for name in _ENVIRONMENT):
        colab = os.environ.get("COLAB_TPU_ADDR")
        return _resolver(f"grpc://{colab}" if colab else None, **job)
    # Not TPU_SYSTEM, which TensorFlow's build for TPUs lists on machines without a TPU.
    if tf.config.list_physical_devices("TPU"):
        return _resolver("local")
    _warn_of_unused_chips()
    return None


@functools.cache
def _warn_of_unused_chips() -> None:
    if chips := attached_chips():
        logging.warning(
            "This machine has %d TPU chip(s), but TensorFlow %s sees none, so they are not used. "
            "Install JAX for TPUs, which uses them with this TensorFlow (%s). TensorFlow's own "
            "build for TPUs, tensorflow-tpu, needs an environment without tensorflow. The chips "
            "belong to one process at a time.",
            chips,
            tf.__version__,
            of_jax("installation").line_for("tpu"),
        )


def of_jax(module: str) -> Any:
    """A module of `engine/jax`, the room above this one; imported on first use."""
    return importlib.import_module(f"tpu_estimator_compat.engine.jax.{module}")


def attached_chips(devices: str = "/sys/bus/pci/devices") -> int:
    """Number of TPU chips of this machine, by their PCI vendor and device numbers."""
    count = 0
    for vendor in glob.glob(f"{devices}/*/vendor"):
        try:
            numbers = [pathlib.Path(vendor).with_name(n).read_text() for n in ("vendor", "device")]
        except OSError:  # unplugged meanwhile
            continue
        count += (int(numbers[0], 16), int(numbers[1], 16)) in _PCI_NUMBERS
    return count


def _resolver(address: str | None, **job: str) -> Resolver:
    try:
        return TPUClusterResolver(tpu=address, **job)
    except Exception as error:
        raise _unreachable(address, error) from error


def strategy(
    resolver: Resolver, num_cores_per_replica: int | None = None
) -> tf.distribute.TPUStrategy:
    """The strategy over a TPU's cores, cached by the TPU and `num_cores_per_replica`."""
    key = (_address(resolver), num_cores_per_replica)
    if key not in _strategies:
        topology = initialize(resolver)
        assignment = None
        if num_cores_per_replica:
            assignment = _device_assignment(topology, num_cores_per_replica)
        _strategies[key] = over_cores(resolver, assignment)
        logging.info(
            "Running on the TPU at %s: %d replica(s).",
            _address(resolver) or "this machine",
            _strategies[key].num_replicas_in_sync,
        )
    return _strategies[key]


def over_cores(resolver: Resolver, device_assignment: Any = None) -> tf.distribute.TPUStrategy:
    """A new strategy over an initialized TPU; without an assignment, each core is a replica."""
    with eager.eager_mode():  # in graph mode it would ask a session for the devices
        return tf.distribute.TPUStrategy(resolver, experimental_device_assignment=device_assignment)


def initialize(resolver: Resolver) -> Any:
    """Connects to the TPU and initializes it, once per process: a second time loses variables.

    Returns its `tf.tpu.experimental.Topology`; raises RuntimeError if it cannot be reached.
    """
    address = _address(resolver)
    if address not in _topologies:
        with eager.eager_mode():
            try:
                _check_that_it_listens(resolver)
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


def _check_that_it_listens(resolver: Resolver) -> None:
    """Raises OSError where a host of a remote TPU takes no connection: gRPC would keep waiting."""
    if not resolver.master().startswith("grpc://") or any(map(os.environ.get, _PROXIES)):
        return
    spec = resolver.cluster_spec()
    deadline = time.monotonic() + _CONNECTION_SECONDS
    for address in (task for job in spec.jobs for task in spec.job_tasks(job)):
        host, _, port = address.rpartition(":")
        left = max(deadline - time.monotonic(), 0.1)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=left).close()
        except OSError as error:
            raise OSError(f"{address} takes no connection: {error}") from error


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
        computation_shape=computation_shape(cores_per_replica, topology.mesh_shape),
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
