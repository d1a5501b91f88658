"""Runs scenarios on simulated TPUs, logical CPUs and JAX's devices, each once in a session."""

import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from support.sharing import shared
from support.sides import running

from tpu_estimator_compat.environment import has_xla_for_cpu

from .configurations import CONFIGURATIONS, ON_JAX
from .model import SCENARIOS

Run = Callable[[str], pathlib.Path]


@pytest.fixture(scope="session")
def asked(request: pytest.FixtureRequest) -> set[str]:
    return set(running.asked_for(request.session, "tpu_sim", "scenario"))


@pytest.fixture(scope="session")
def names(request: pytest.FixtureRequest) -> set[str]:
    return set(running.asked_for(request.session, "tpu_sim", "name"))


@pytest.fixture(scope="session")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., pathlib.Path]:
    """Where scenarios have left their answers, under settings; these have a name for files."""

    def run(key: str, settings: dict[str, Any], names: list[str]) -> pathlib.Path:
        side = running.of_ours(
            *(tmp_path_factory, "tpu_sim"),
            settings={**settings, "compile": has_xla_for_cpu()},
            processes=1,
            options={"largest": 10_000, "limit": 300.0},
        )
        return shared(tmp_path_factory, key.replace(" ", "-"), lambda out: side.run(names, out))

    return run


@pytest.fixture(scope="session")
def cores(asked: set[str], run_once: Callable[..., pathlib.Path]) -> Run:
    """`cores(configuration)`: of a simulated TPU."""

    def of(name: str) -> pathlib.Path:
        names = [each for each in CONFIGURATIONS[name].scenarios if each in asked]
        return run_once(f"cores-{name}", {"configuration": name}, names)

    return of


@pytest.fixture(scope="session")
def cpus(
    asked: set[str], names: set[str], run_once: Callable[..., pathlib.Path]
) -> Callable[[int], pathlib.Path]:
    """`cpus(replicas)`: of logical CPUs, all that configurations with so many replicas run."""
    all_of = {**CONFIGURATIONS, **ON_JAX}

    def of(replicas: int) -> pathlib.Path:
        same = [all_of[name].scenarios for name in names if all_of[name].replicas == replicas]
        found = dict.fromkeys(s for every in same for s in every)
        wanted = [each for each in SCENARIOS if each in found and each in asked]
        return run_once(f"cpus-{replicas}", {"replicas": replicas}, wanted)

    return of


@pytest.fixture(scope="session")
def jax_devices(
    asked: set[str], names: set[str], run_once: Callable[..., pathlib.Path]
) -> pathlib.Path:
    """Of JAX's devices, all that they run."""
    each = {name: ON_JAX[name].scenarios for name in ON_JAX if name in names}
    wanted = [f"{name}.{s}" for name, of in each.items() for s in of if s in asked]
    return run_once("jax-devices", {"jax": True}, wanted)
