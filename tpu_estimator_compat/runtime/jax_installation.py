"""JAX as it is installed here, and its devices."""

from __future__ import annotations

import importlib.util
import logging
import os
import pathlib
from importlib import metadata
from typing import Any

VERSIONS = {"jax": "0.10.2", "jaxlib": "0.10.2"}
"""What this package is tried with, and what its extra `jax` installs."""

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
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # as the XDG specification has it
        base = os.path.expanduser("~/.cache")
    return pathlib.Path(base, "tpu_estimator_compat", "jax")


def devices(cpus: int) -> tuple[Any, ...]:
    """The devices of JAX's default platform, in all processes.

    Args:
      cpus: how many CPU devices there are to be, where JAX has nothing else, and nobody has asked
        it for its devices before.

    Raises:
      ImportError: see `check`.
    """
    check()
    import jax
    from jax.extend import backend

    if not _is_started():
        _set_unless_set(jax, "jax_num_cpu_devices", cpus, -1)
        _set_unless_set(jax, "jax_compilation_cache_dir", str(cache_directory()), None)
        # A step of a legacy model takes seconds to compile; what is quicker is not worth a file.
        logging.getLogger("jax._src.xla_bridge").addFilter(_no_hint_at_accelerators)
    del backend
    return tuple(jax.devices())


def _is_started() -> bool:
    from jax._src import xla_bridge

    return bool(xla_bridge.backends_are_initialized())


def _set_unless_set(jax: Any, name: str, value: Any, unset: Any) -> None:
    if getattr(jax.config, name) == unset and "xla_force_host_platform_device_count" not in (
        os.environ.get("XLA_FLAGS", "") if name == "jax_num_cpu_devices" else ""
    ):
        jax.config.update(name, value)


def _no_hint_at_accelerators(record: logging.LogRecord) -> bool:
    return "falling back to cpu" not in record.getMessage().lower()


def has_tpu() -> bool:
    """Whether JAX is installed and has a TPU; it is not started where nothing speaks for one."""
    if not is_installed() or _version("libtpu") is None:
        return False
    if not any(pathlib.Path("/dev").glob("accel*")) and not any(
        pathlib.Path("/dev/vfio").glob("[0-9]*")
    ):
        return False
    check()
    import jax

    return jax.default_backend() == "tpu"
