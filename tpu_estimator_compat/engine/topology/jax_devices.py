"""JAX's devices, found by modules of `engine/jax` that are imported when somebody asks for them."""

from __future__ import annotations

import importlib
from typing import Any, cast

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.engine.topology.replicas import Topology

_ENTRIES = {
    "topology": "tpu_estimator_compat.engine.jax.topology",
    "joining": "tpu_estimator_compat.engine.jax.processes.joining",
    "installation": "tpu_estimator_compat.engine.jax.installation",
}
"""The modules behind the functions here, which have functions of the same names."""


def join(config: RunConfig) -> RunConfig:
    """`config`, once this process has joined the others that run steps on JAX's devices."""
    return cast(RunConfig, _entry("joining").join(config))


def resolve(config: RunConfig, mode: str) -> Topology:
    """The topology for `mode` on JAX's devices."""
    return cast(Topology, _entry("topology").resolve(config, mode))


def has_tpu() -> bool:
    """Whether this machine has a TPU that JAX sees."""
    return bool(_entry("topology").has_tpu())


def is_installed() -> bool:
    """Whether there is a JAX, of whatever version."""
    return bool(_entry("installation").is_installed())


def line_for(accelerator: str) -> str:
    """The pip command that installs JAX for an accelerator."""
    return str(_entry("installation").line_for(accelerator))


def _entry(name: str) -> Any:
    return importlib.import_module(_ENTRIES[name])
