"""Eight CPU devices for JAX, of which a test takes the first n by `TPUConfig(num_shards=n)`.

The conftest of a folder imports this before JAX starts.
"""

import functools
import pathlib

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

from tpu_estimator_compat.engine.jax import installation as jax_installation

jax.config.update("jax_num_cpu_devices", 8)
# Else `jax.devices()` loads libtpu, with which JAX's profiler ends the process.
jax.config.update("jax_platforms", "cpu")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Lowered and compiled steps are kept for the session, and not in the home directory."""
    directory = tmp_path_factory.getbasetemp() / "jax-cache"
    monkeypatch.setattr(jax_installation, "cache_directory", lambda: directory)
    _keep_compiled(directory)


@functools.cache
def _keep_compiled(directory: pathlib.Path) -> None:
    """Has JAX compile what several tests run once, however quickly it is compiled."""
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    compilation_cache.reset_cache()  # it may have been asked for before, and have been off
