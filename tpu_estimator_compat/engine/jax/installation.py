"""The installed JAX, and its devices."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import logging
import os
import pathlib
import re
from collections.abc import Iterable
from importlib import metadata
from typing import Any

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.files import cache_files

OLDEST, NEWEST = "0.10.2", "0.12.0.1"
"""The oldest and newest tried release of JAX; the extra `jax` installs one in between."""

RANGE = f">={OLDEST},<={NEWEST}"

_CPU_FLAG = "xla_force_host_platform_device_count"
_INSTALL = environment.pip_line("jax")


def line_for(accelerator: str) -> str:
    return f"pip install 'jax[{accelerator}]{RANGE}'"


def is_installed() -> bool:
    return importlib.util.find_spec("jax") is not None and version_of("jaxlib") is not None


def check() -> None:
    """Raises ImportError where JAX is not installed; does not import it.

    An untried release gets a warning, once in a process: JAX's interfaces are not stable.
    """
    if not is_installed():
        raise ImportError(
            f'runtime="jax" needs JAX {OLDEST} to {NEWEST}; found jax {version_of("jax")}, jaxlib '
            f"{version_of('jaxlib')}. Install it with `{_INSTALL}`; on a TPU VM with "
            f"`{line_for('tpu')}`, with CUDA 12 with `{line_for('cuda12')}`."
        )
    _warn_of_untried(str(version_of("jax")))


@functools.cache
def _warn_of_untried(version: str) -> None:
    if not _numbers(OLDEST) <= _numbers(version) <= _numbers(NEWEST):
        logging.getLogger("tensorflow").warning(
            "JAX %s was not tried with this package: %s to %s were. Some of the interfaces that it "
            "uses are not stable. `python -m tpu_estimator_compat doctor` says whether they work; "
            "`%s` installs a release that was tried.",
            version,
            OLDEST,
            NEWEST,
            _INSTALL,
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:4]))


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def cache_directory() -> pathlib.Path:
    """The folder of compiled programs: under $XDG_CACHE_HOME, or ~/.cache."""
    return cache_files.directory("jax")


def devices(cpus: int, *, tpu_chips: int) -> tuple[Any, ...]:
    """The devices of JAX's default platform, in all processes.

    `cpus` is the number of CPU devices to make where JAX has no other devices, has not started, and
    the user has set no number.
    """
    check()
    import jax

    config: Any = jax.config
    if config.jax_compilation_cache_dir is None and cache_files.is_private():
        cache_files.trim()  # JAX does not limit its own files
        config.update("jax_compilation_cache_dir", str(cache_directory()))
    plugins = importlib.util.find_spec("jax_plugins")  # for other devices, such as GPUs
    if config.jax_platforms is None and not tpu_chips and not plugins:
        # libtpu, which preflight installs, would look for a TPU, and complain.
        config.update("jax_platforms", "cpu")
    if config.jax_num_cpu_devices == -1 and _CPU_FLAG not in os.environ.get("XLA_FLAGS", ""):
        with contextlib.suppress(RuntimeError):  # JAX has started already
            config.update("jax_num_cpu_devices", cpus)
    return tuple(jax.devices())


def process_index() -> int:
    """The index of this process in `jax.distributed`; 0 for a single process. Starts JAX."""
    import jax

    return int(jax.process_index())


def joined_as() -> int:
    """The same as `process_index`, without starting JAX."""
    from jax._src import distributed  # JAX has no public function for it

    return int(distributed.global_state.process_id)


def local(devices: Iterable[Any]) -> tuple[Any, ...]:
    own = process_index()
    return tuple(device for device in devices if device.process_index == own)


def is_started() -> bool:
    """Whether JAX has made its devices: their number can no longer change."""
    from jax._src import xla_bridge  # JAX has no public function for it

    return bool(xla_bridge.backends_are_initialized())


def profiler_would_crash() -> bool:
    """Whether JAX has loaded libtpu on a machine without a TPU: its profiler would end the process.

    With JAX 0.10.2 and libtpu 0.0.51, `jax.devices(); jax.profiler.start_trace(...)` shows it.
    """
    import jax
    from jax._src.lib import xla_client  # JAX has no public function for it

    return bool(xla_client.pjrt_plugin_loaded("tpu")) and jax.default_backend() != "tpu"
