"""TensorFlow's own TPUStrategy runs our steps: on simulated cores as on as many logical CPUs.

No TPU is involved: see `runtime` for what is simulated.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from parity.runs import shared

from tpu_sim import servers
from tpu_sim.configurations import CONFIGURATIONS, Configuration
from tpu_sim.scenarios import MOVES_TO_HOST

pytestmark = pytest.mark.slow

TOLERANCE = 1e-6
TIMEOUT = 900  # seconds; hangs must not stop the session
TESTS = pathlib.Path(__file__).parents[1]

CASES = [(name, scenario) for name, each in CONFIGURATIONS.items() for scenario in each.scenarios]


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}


def run_driver(request: dict[str, Any], out: pathlib.Path) -> None:
    request = {"addresses": None, "compile": True, **request, "answer": str(out / "answer")}
    (out / "request").write_text(json.dumps(request))
    with (out / "log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-m", "tpu_sim.driver", str(out / "request")],
            env=environment(),
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
        "scenarios": configuration.scenarios,
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


def on_cpus(replicas: int, scenarios: list[str], out: pathlib.Path) -> None:
    """Runs scenarios on logical CPUs."""
    request = {"mesh": None, "replicas": replicas, "hosts": 1, "cores_per_replica": None}
    run_driver({**request, "scenarios": scenarios}, out)


def answer(tmp_path_factory: Any, name: str, run: Any) -> dict[str, Any]:
    return json.loads((shared(tmp_path_factory, name, run) / "answer").read_text())


@pytest.fixture
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a scenario saw on cores, and on as many CPUs as there are replicas."""
    name, scenario = request.param
    configuration = CONFIGURATIONS[name]
    cores = answer(
        tmp_path_factory,
        f"cores-{name.replace(' ', '-')}",
        functools.partial(on_cores, configuration),
    )
    # Configurations with as many replicas share what CPUs say.
    replicas = configuration.replicas
    same = [c.scenarios for c in CONFIGURATIONS.values() if c.replicas == replicas]
    scenarios = list(dict.fromkeys(s for each in same for s in each))
    cpus = answer(
        tmp_path_factory, f"cpus-{replicas}", functools.partial(on_cpus, replicas, scenarios)
    )
    return configuration, scenario, cores[scenario], cpus[scenario]


@pytest.mark.parametrize("both", CASES, indirect=True, ids=lambda case: f"{case[0]}-{case[1]}")
def test_cores_do_what_cpus_do(both):
    configuration, scenario, cores, cpus = both
    for side in (cores, cpus):
        if "error" in side:
            pytest.fail(side["error"], pytrace=False)
    if configuration.hosts == 1:
        assert cores["seen"].keys() == cpus["seen"].keys()
    for name, seen in cores["seen"].items():
        assert_same(seen, cpus["seen"][name], name)
    clusters = cores["clusters"]
    assert clusters or scenario in ("refused_on_a_pod",)
    assert not cpus["clusters"]
    for cluster in clusters:
        assert cluster["compiled"]
        moved = set(cluster["on_host"])
        if scenario == "outside_compilation":
            assert moved <= {"PyFunc", "EnsureShape"}
        else:
            assert not moved or (scenario in MOVES_TO_HOST and moved == {"PrintV2", "StringFormat"})


def assert_same(found: Any, expected: Any, path: str) -> None:
    """Equal structures; numbers of either kind within the tolerance."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), path
        for name, value in expected.items():
            assert_same(found[name], value, f"{path}/{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for i, value in enumerate(expected):
            assert_same(found[i], value, f"{path}[{i}]")
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, TOLERANCE, TOLERANCE, err_msg=path)
    else:
        assert found == expected, path


def test_where_the_host_runs_what_is_marked(tmp_path_factory):
    """The marks of `outside_compilation` reach TensorFlow's TPU code."""
    name = "four cores"
    run = functools.partial(on_cores, CONFIGURATIONS[name])
    seen = answer(tmp_path_factory, "cores-four-cores", run)["outside_compilation"]
    assert any("PyFunc" in cluster["on_host"] for cluster in seen["clusters"])
