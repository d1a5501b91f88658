import pytest
from support.sides import running

from tpu_estimator_compat.engine.jax.lowering import module_cache
from tpu_estimator_compat.engine.jax.lowering.step_module import Dispatch
from tpu_estimator_compat.tools.preflight import compiler, targets
from tpu_estimator_compat.tools.preflight.compiled import Error

from .configurations import CONFIGURATIONS

pytestmark = pytest.mark.slow

NAME = "four cores"
TOPOLOGY = targets.parse("v5e:2x2")

OFTEN = ("branches_and_loops",)
SCENARIOS = [
    pytest.param(name, marks=[] if name in OFTEN else [pytest.mark.full])
    for name in CONFIGURATIONS[NAME].scenarios
]
"""The others compile in the full run; the families of `tests/tools/preflight` do in every run."""


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_programs_of_a_scenario_compile_for_a_tpu(cores, scenario, monkeypatch):
    directory = cores(NAME)
    monkeypatch.setenv("XDG_CACHE_HOME", str(directory / "compiled"))
    clusters = running.answer(directory, scenario)["result"]
    modules = sorted(directory.glob(f"{scenario}.*.module"))
    assert len(modules) == len(clusters)
    collectives: set[str] = set()
    for path in modules:
        replicas = clusters[int(path.name.split(".")[1])]["replicas"]
        # Scenarios have programs in common; each is compiled once.
        dispatch = Dispatch(module_cache.load(directory, path.stem))
        found = compiler.compile(dispatch, TOPOLOGY, replicas)
        assert (found.error, found.message) == (Error.NONE, ""), path.name
        collectives |= found.collectives.keys()
    assert "all-reduce" in collectives or not modules
