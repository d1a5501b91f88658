import importlib.util

import pytest
from support.simulated_tpu.runtime import SimulatedTPU, simulated

from tpu_estimator_compat.engine.topology import tpu_system

if importlib.util.find_spec("jax") is None:  # an installation without it
    collect_ignore_glob = ["test_jax_*.py", "test_chosen_topology.py"]
else:
    from support.jax_cpus import own_cache  # noqa: F401 (a fixture)


@pytest.fixture(autouse=True)
def no_tpu_yet(monkeypatch):
    monkeypatch.setattr(tpu_system, "_strategies", {})
    monkeypatch.setattr(tpu_system, "_topologies", {})
    for name in (*tpu_system._ENVIRONMENT, *tpu_system._PROXIES):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def chip():
    with simulated(SimulatedTPU((1, 1, 1, 2))) as made:
        yield made
