"""Replicas on JAX's devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat import environment
from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.engine.jax import installation, profiler
from tpu_estimator_compat.engine.topology import local, tpu_system
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.spec import ModeKeys


@dataclasses.dataclass(frozen=True)
class JaxTopology(Topology):
    """The replicas of a mode on JAX's devices.

    Here, an input mode's host is one or more processes that are fed the same: one in training,
    unless a replica spans processes; all processes where they share an evaluation.

    Attributes:
      devices: the devices of all replicas, in the order of the replicas.
      cores_per_replica: the number of devices of a replica.
    """

    devices: tuple[Any, ...] = ()
    cores_per_replica: int = 1

    runtime = environment.JAX
    compiles = compiles_steps = True

    @property
    def num_replicas(self) -> int:
        return len(self.devices) // self.cores_per_replica

    @property
    def workers(self) -> Any:
        if len(self.readers) == 1:
            return None
        from tpu_estimator_compat.engine.jax.processes import group

        return group.processes()

    @property
    def is_first_process(self) -> bool:
        return installation.process_index() == 0

    @property
    def replicas_per_element(self) -> int:
        return self.replicas_per_host

    @property
    def first_replica(self) -> int:
        """The index of the first replica that this process's input feeds."""
        return (self.this_host or 0) * self.replicas_per_host

    @property
    def readers(self) -> list[int]:
        """For each process, the index of the first process that is fed the same."""
        count = len(_processes(self.devices))
        together = count // self.num_hosts
        return [index - index % together for index in range(count)]

    @property
    def platform(self) -> str:
        """ "cpu", "gpu" or "tpu"."""
        return str(self.devices[0].platform)

    @property
    def computes_here(self) -> bool:
        return self.workers is None and self.platform == "cpu"

    @property
    def mesh(self) -> Any:
        from tpu_estimator_compat.engine.jax import meshes

        return meshes.mesh(self.devices, self.cores_per_replica)


def has_tpu() -> bool:
    chips = tpu_system.attached_chips()
    if not chips or not installation.is_installed():
        return False
    devices = installation.devices(1, tpu_chips=chips)
    return bool(devices[0].platform == "tpu")


def resolve(config: RunConfig, mode: str) -> JaxTopology:
    """The replicas of `mode` on JAX's devices: the first `TPUConfig.num_shards`, or all."""
    for field in ("train_distribute", "eval_distribute"):
        if getattr(config, field) is not None:
            raise ValueError(
                f'RunConfig({field}=...) is a strategy of TensorFlow, and runtime="jax" runs on '
                "JAX's devices. Drop one of the two."
            )
    environment.require_xla_for_cpu('runtime="jax"')
    devices = installation.devices(
        local.count_logical_cpus(), tpu_chips=tpu_system.attached_chips()
    )
    if devices[0].platform == "gpu":
        _hide_gpus()
    profiler.record_too(config)
    tpu_config = getattr(config, "tpu_config", None)
    cores = getattr(tpu_config, "num_cores_per_replica", None) or 1
    devices, hosts = _of_processes(devices, mode, cores)
    wanted = _replicas(getattr(tpu_config, "num_shards", None), devices, cores)
    logging.info(
        "Running %s with JAX on %d %s device(s) of %d, %d to a replica.",
        mode,
        wanted * cores,
        devices[0].platform,
        len(devices),
        cores,
    )
    chosen = devices[: wanted * cores]
    count = len(_processes(devices))
    this_host = 0 if hosts == 1 else installation.process_index() * hosts // count
    return JaxTopology(tf.distribute.get_strategy(), True, hosts, this_host, chosen, cores)


def _replicas(shards: int | None, devices: Sequence[Any], cores: int) -> int:
    wanted = shards or len(devices) // cores
    if not 0 < wanted * cores <= len(devices):
        raise ValueError(
            f"TPUConfig asks for {wanted} replica(s) of {cores} device(s) each, and JAX has "
            f"{len(devices)} device(s) of platform {devices[0].platform}. Lower num_shards or "
            "num_cores_per_replica, or leave num_shards None."
        )
    count = len(_processes(devices))
    if count > 1 and wanted * cores != len(devices):
        raise ValueError(
            f"TPUConfig asks for {wanted} replica(s) of {cores} device(s) each, and the "
            f"{count} processes have {len(devices)} devices together: all of them take part. "
            "Leave num_shards None."
        )
    return wanted


def _of_processes(devices: Sequence[Any], mode: str, cores: int) -> tuple[tuple[Any, ...], int]:
    """The devices that run a mode, and the number of hosts that are fed differently.

    In training, each process has its own input, unless a replica spans processes. All processes
    share an evaluation or prediction to which they come together; then each reads the whole input,
    so that the results are those of one process, whatever input_fn does with hosts.
    """
    processes = _processes(devices)
    if len(processes) == 1:
        return tuple(devices), 1
    devices = sorted(devices, key=lambda device: device.process_index)  # stable
    counts = [sum(d.process_index == one for d in devices) for one in processes]
    spanned, rest = divmod(cores, counts[0])
    if len(set(counts)) > 1 or (counts[0] % cores and (rest or len(processes) % spanned)):
        raise ValueError(
            f"The processes have {counts} devices, and {cores} share a replica. Every process "
            "needs the same number of devices: a multiple of TPUConfig.num_cores_per_replica, or "
            "a whole part of it."
        )
    if mode == ModeKeys.TRAIN:
        return tuple(devices), len(processes) // max(1, spanned)
    from tpu_estimator_compat.engine.jax.processes import group

    all_processes = group.processes()
    if all_processes is not None and all_processes.together(mode):
        logging.info("%d processes share this call of %s.", len(processes), mode)
        return tuple(devices), 1
    if spanned > 1:
        raise ValueError(
            f"A replica has devices of {spanned} processes, and not all of the processes came to "
            f"{mode} together. Call it in all of them, or lower TPUConfig.num_cores_per_replica."
        )
    logging.info("This process runs %s alone: other processes make other calls.", mode)
    return installation.local(devices), 1


def _processes(devices: Sequence[Any]) -> list[int]:
    return sorted({device.process_index for device in devices})


def _hide_gpus() -> None:
    """Hides the GPUs from TensorFlow: it and JAX would each take most of their memory."""
    gpus = tf.config.get_visible_devices("GPU")
    if not gpus:
        return
    try:
        tf.config.set_visible_devices([], "GPU")
    except RuntimeError:  # a device cannot be hidden once it is in use
        logging.warning(
            "TensorFlow was in use before the estimator was asked for steps, and holds memory of "
            "%d GPU(s) that JAX needs as well. Call tf.config.set_visible_devices([], 'GPU') at "
            "the beginning of the script.",
            len(gpus),
        )
    else:
        logging.info("TensorFlow leaves %d GPU(s) to JAX, and uses the CPU.", len(gpus))
