"""Functions of `engine/jax` that a topology needs; its modules are imported on first use."""

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
"""Modules that define the functions of the same names below."""


def join(config: RunConfig) -> RunConfig:
    """Joins the other processes that run steps on JAX's devices; returns the updated `config`."""
    return cast(RunConfig, _entry("joining").join(config))


def resolve(config: RunConfig, mode: str) -> Topology:
    return cast(Topology, _entry("topology").resolve(config, mode))


def has_tpu() -> bool:
    return bool(_entry("topology").has_tpu())


def is_installed() -> bool:
    return bool(_entry("installation").is_installed())


def line_for(accelerator: str) -> str:
    """The pip command that installs JAX for an accelerator."""
    return str(_entry("installation").line_for(accelerator))


def _entry(name: str) -> Any:
    return importlib.import_module(_ENTRIES[name])
