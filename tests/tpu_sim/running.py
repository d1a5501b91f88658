"""Runs scenarios: a process for each simulated TPU and number of CPUs, one for all on JAX."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support import python_path
from support.sharing import shared

from tpu_estimator_compat.environment import has_xla_for_cpu
from tpu_sim import servers
from tpu_sim.configurations import CONFIGURATIONS, Configuration

TIMEOUT = 900  # seconds; hangs must not stop the session
TESTS = pathlib.Path(__file__).parents[1]


wanted: set[str] | None = None
"""Scenarios that the selected tests ask for; None for all."""


def _selected(scenarios: Sequence[str]) -> list[str]:
    return [name for name in scenarios if wanted is None or name in wanted]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": python_path.joined(TESTS.parent, TESTS)}


def run_driver(request: dict[str, Any], out: pathlib.Path) -> None:
    request = {
        "addresses": None,
        "compile": has_xla_for_cpu(),
        **request,
        "answer": str(out / "answer"),
    }
    (out / "request").write_text(json.dumps(request))
    run_module("tpu_sim.driver", out / "request", out)


def run_module(name: str, argument: pathlib.Path, out: pathlib.Path) -> None:
    """Runs a module in a process of its own, and waits; its log goes to `out`."""
    with (out / "log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-m", name, str(argument)],
            env={**environment(), "XDG_CACHE_HOME": str(out)},
            cwd=out,
            stdout=log,
            stderr=log,
            timeout=TIMEOUT,
        )
    assert done.returncode == 0, (out / "log").read_text(errors="replace")[-3000:]


def on_cores(configuration: Configuration, out: pathlib.Path) -> None:
    """Runs a configuration's scenarios on the simulated TPU."""
    request = {
        "mesh": configuration.mesh,
        "hosts": configuration.hosts,
        "cores_per_replica": configuration.cores_per_replica,
        "scenarios": _selected(configuration.scenarios),
    }
    if not configuration.remote:
        run_driver(request, out)
        return
    cores = int(np.prod(configuration.mesh)) // configuration.hosts
    request["addresses"] = servers.free_addresses(configuration.hosts)
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tpu_sim.servers",
                json.dumps([request["addresses"], host, cores]),
            ],
            env=environment(),
            stdout=subprocess.PIPE,
        )
        for host in range(configuration.hosts)
    ]
    try:
        for process in processes:
            assert process.stdout.readline() == b"up\n"
        run_driver(request, out)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def on_cpus(replicas: int, scenarios: Sequence[str], out: pathlib.Path) -> None:
    """Runs scenarios on logical CPUs."""
    request = {"mesh": None, "replicas": replicas, "hosts": 1, "cores_per_replica": None}
    run_driver({**request, "scenarios": _selected(scenarios)}, out)


def jax_devices(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Where JAX's devices have left their answer to all that they run."""

    def run(out: pathlib.Path) -> None:
        run_module("tpu_sim.jax_driver", out / "answer", out)

    return shared(tmp_path_factory, "jax-devices", run)


def cores(tmp_path_factory: pytest.TempPathFactory, name: str) -> pathlib.Path:
    """Where the configuration `name` has left its answer; it runs once in a session."""
    run = functools.partial(on_cores, CONFIGURATIONS[name])
    return shared(tmp_path_factory, f"cores-{name.replace(' ', '-')}", run)


def cpus(tmp_path_factory: pytest.TempPathFactory, replicas: int) -> pathlib.Path:
    """Where so many logical CPUs have left their answer to what all such configurations run."""
    same = [c.scenarios for c in CONFIGURATIONS.values() if c.replicas == replicas]
    scenarios = list(dict.fromkeys(s for each in same for s in each))
    run = functools.partial(on_cpus, replicas, scenarios)
    return shared(tmp_path_factory, f"cpus-{replicas}", run)


def answer(directory: pathlib.Path) -> dict[str, Any]:
    """By scenario: `seen` or `error`, and `clusters`."""
    return json.loads((directory / "answer").read_text())
