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

FOLDER = pathlib.Path(__file__).parent
Run = Callable[[str], pathlib.Path]


Pairs = list[tuple[str, str]]


@pytest.fixture(scope="session")
def asked(request: pytest.FixtureRequest) -> Callable[[str], Pairs]:
    """`asked(fixture)`: configuration and scenario of the selected tests that have a fixture."""

    def of(fixture: str) -> Pairs:
        found = [
            item.callspec.params
            for item in request.session.items
            if FOLDER in item.path.parents and fixture in item.fixturenames
        ]
        return [(each.get("name", "four cores"), each["scenario"]) for each in found]

    return of


@pytest.fixture(scope="session")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., pathlib.Path]:
    """Where scenarios have left their answers, under settings; these have a name for files."""

    def run(key: str, settings: dict[str, Any], names: list[str]) -> pathlib.Path:
        side = running.of_ours(
            "tpu_sim",
            settings={**settings, "compile": has_xla_for_cpu()},
            processes=1,
            options={"largest": 10_000, "limit": 300.0},
        )
        return shared(tmp_path_factory, key.replace(" ", "-"), lambda out: side.run(names, out))

    return run


@pytest.fixture(scope="session")
def cores(asked: Callable[[str], Pairs], run_once: Callable[..., pathlib.Path]) -> Run:
    """`cores(configuration)`: of a simulated TPU."""

    def of(name: str) -> pathlib.Path:
        wanted = set(asked("cores"))
        names = [each for each in CONFIGURATIONS[name].scenarios if (name, each) in wanted]
        return run_once(f"cores-{name}", {"configuration": name}, names)

    return of


@pytest.fixture(scope="session")
def cpus(
    asked: Callable[[str], Pairs], run_once: Callable[..., pathlib.Path]
) -> Callable[[int], pathlib.Path]:
    """`cpus(replicas)`: of logical CPUs, all that configurations with so many replicas run."""
    all_of = {**CONFIGURATIONS, **ON_JAX}

    def of(replicas: int) -> pathlib.Path:
        found = {each for name, each in asked("cpus") if all_of[name].replicas == replicas}
        wanted = [each for each in SCENARIOS if each in found]
        return run_once(f"cpus-{replicas}", {"replicas": replicas}, wanted)

    return of


@pytest.fixture(scope="session")
def jax_devices(
    asked: Callable[[str], Pairs], run_once: Callable[..., pathlib.Path]
) -> pathlib.Path:
    """Of JAX's devices, all that they run."""
    found = set(asked("jax_devices"))
    wanted = [f"{n}.{s}" for n, each in ON_JAX.items() for s in each.scenarios if (n, s) in found]
    return run_once("jax-devices", {"jax": True}, wanted)
