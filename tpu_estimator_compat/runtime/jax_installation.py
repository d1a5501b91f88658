"""JAX as it is installed here, and its devices."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pathlib
from collections.abc import Iterable
from importlib import metadata
from typing import Any

from tpu_estimator_compat.runtime import cache_files

VERSIONS = {"jax": "0.10.2", "jaxlib": "0.10.2"}
"""What this package is tried with, and what its extra `jax` installs."""

_CPU_FLAG = "xla_force_host_platform_device_count"
_INSTALL = "pip install 'tpu_estimator_compat[jax]'"


def is_installed() -> bool:
    """Whether there is a JAX, of whatever version."""
    return importlib.util.find_spec("jax") is not None and _version("jaxlib") is not None


def check() -> None:
    """Refuses what was not tried.

    Raises:
      ImportError: there is no JAX, or another one.
    """
    found = {name: _version(name) for name in VERSIONS}
    if found == VERSIONS:
        return
    needed = " and ".join(f"{name} {version}" for name, version in VERSIONS.items())
    there = ", ".join(f"{n} {v}" if v else f"no {n}" for n, v in found.items())
    raise ImportError(
        f'runtime="jax" needs {needed}, whose interfaces it was tried with; found {there}. '
        f"Install them with `{_INSTALL}`; on a TPU VM or with CUDA, migration_guide/jax.md has "
        "the line."
    )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def cache_directory() -> pathlib.Path:
    """Where compiled programs are kept: under $XDG_CACHE_HOME, or ~/.cache."""
    return cache_files.directory("jax")


def devices(cpus: int, *, tpu_chips: int) -> tuple[Any, ...]:
    """The devices of JAX's default platform, in all processes.

    Args:
      cpus: how many CPU devices there are to be, where JAX has nothing else, and nobody has asked
        it for its devices or set their number before.
      tpu_chips: how many TPU chips this machine has.

    Raises:
      ImportError: see `check`.
      ValueError: see `environment.cache_limit`.
    """
    check()
    import jax

    config: Any = jax.config
    if config.jax_compilation_cache_dir is None:
        cache_files.trim()  # JAX sets no limit to its own
        config.update("jax_compilation_cache_dir", str(cache_directory()))
    if config.jax_platforms is None and not tpu_chips and not _has_plugins():
        # libtpu, which preflight brings, would look for a TPU, and complain.
        config.update("jax_platforms", "cpu")
    if config.jax_num_cpu_devices == -1 and _CPU_FLAG not in os.environ.get("XLA_FLAGS", ""):
        # JAX has started already, with as many as it has.
        with contextlib.suppress(RuntimeError):
            config.update("jax_num_cpu_devices", cpus)
    return tuple(jax.devices())


def _has_plugins() -> bool:
    """Whether JAX has found packages for other devices, such as GPUs."""
    return importlib.util.find_spec("jax_plugins") is not None


def process_index() -> int:
    """Which of the processes of `jax.distributed` this is; 0 for one alone."""
    import jax

    return int(jax.process_index())


def joined_as() -> int:
    """As `process_index`, where JAX must not be started yet."""
    from jax._src import distributed  # nothing public tells

    return int(distributed.global_state.process_id)


def local(devices: Iterable[Any]) -> tuple[Any, ...]:
    """Those of `devices` that belong to this process."""
    own = process_index()
    return tuple(device for device in devices if device.process_index == own)


def is_started() -> bool:
    """Whether JAX has its devices already; how many there are is settled then."""
    from jax._src import xla_bridge  # nothing public tells

    return bool(xla_bridge.backends_are_initialized())
