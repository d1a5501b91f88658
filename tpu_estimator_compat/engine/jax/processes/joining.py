"""Joins the other processes that run steps on JAX's devices, by `jax.distributed`."""

from __future__ import annotations

import copy
import functools
from typing import Any

from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.engine.cluster import addresses as cluster_addresses
from tpu_estimator_compat.engine.cluster import joining as cluster
from tpu_estimator_compat.engine.jax import installation, profiler
from tpu_estimator_compat.engine.topology import tpu_system

_HEARTBEAT_TIMEOUT = 30  # seconds without a heartbeat after which JAX ends all other processes
_LONGEST_FAREWELL = 7 * 86400  # seconds that a process waits at its end for the others


def join(config: RunConfig) -> RunConfig:
    """Joins the processes that `config` or a TPU pod names, before JAX makes its devices.

    With several workers in TF_CONFIG, JAX's coordinator listens at the chief's address, which
    nothing else uses here. Otherwise, on a machine with a TPU, `jax.distributed.initialize()` looks
    for processes. If the script has called that function itself, this one joins nothing.

    Returns `config`; without workers in TF_CONFIG, in any process but the first, a copy whose
    `is_chief` is False.
    """
    installation.check()
    import jax

    if jax.distributed.is_initialized():
        pass
    elif cluster.is_cluster(config):
        cluster.check_no_parameter_servers(config)
        addresses, index = cluster.addresses(config)
        seconds = int(config.session_creation_timeout_secs or cluster.DEFAULT_WAIT)
        _join(tuple(addresses), index, seconds)
    elif tpu_system.attached_chips() and not installation.is_started():
        _join_pod()
    if config.is_chief and not cluster.is_cluster(config) and installation.joined_as():
        config = copy.deepcopy(config)
        config._is_chief = False
    profiler.watch(config)
    return config


@functools.cache
def _join(addresses: tuple[str, ...], index: int, seconds: int) -> None:
    import jax

    own = f"Process {index} of {len(addresses)} ({addresses[index]})"
    if installation.is_started():
        raise RuntimeError(
            f"{own} cannot join the others of TF_CONFIG, because JAX is in use already. Make the "
            "estimator before anything else asks JAX for devices or arrays."
        )
    # CPU devices need it to exchange values between processes. Other devices ignore it.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    with cluster.joining(own, f"the others of {addresses}", addresses, index, seconds):
        own_host = index == 0 and cluster_addresses.to_listen(addresses)
        _initialize(
            coordinator_address=addresses[0],
            coordinator_bind_address=addresses[0] if own_host else None,  # None: in all networks
            num_processes=len(addresses),
            process_id=index,
            cluster_detection_method="deactivate",
            initialization_timeout=seconds,
        )


@functools.cache
def _join_pod() -> None:
    try:
        _initialize()
    except (ValueError, RuntimeError, OSError, ImportError) as error:
        # There may be no other processes. If there are, the first exchange raises.
        logging.info("jax.distributed found no other processes: %s", error)


def _initialize(**arguments: Any) -> None:
    import jax

    jax.distributed.initialize(
        heartbeat_timeout_seconds=_HEARTBEAT_TIMEOUT,
        shutdown_timeout_seconds=_LONGEST_FAREWELL,
        **arguments,
    )
