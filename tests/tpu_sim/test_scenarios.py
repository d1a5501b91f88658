"""Steps on simulated cores, by TensorFlow's own TPUStrategy, and on JAX's devices: as on CPUs.

No TPU is involved: see `runtime` for what is simulated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tpu_estimator_compat.environment import has_xla_for_cpu
from tpu_sim import running
from tpu_sim.configurations import CONFIGURATIONS, ON_JAX
from tpu_sim.scenarios import MOVES_TO_HOST

pytestmark = pytest.mark.slow

TOLERANCE = 1e-6
JAX_TOLERANCE = 1e-5  # XLA fuses what TensorFlow computes op by op
# It has 8 bits: a rounding is 2**-8 at most. TensorFlow rounds a layer's product and its sum with
# the bias, XLA neither. (With Eigen's kernels, which some processors get, 1.6 * 2**-8 were seen.)
BFLOAT16_TOLERANCE = 2 * 2**-8

CASES = [(name, scenario) for name, each in CONFIGURATIONS.items() for scenario in each.scenarios]
JAX_CASES = [(name, scenario) for name, each in ON_JAX.items() for scenario in each.scenarios]


@pytest.mark.parametrize(("name", "scenario"), CASES)
def test_cores_do_what_cpus_do(tmp_path_factory, name, scenario):
    configuration = CONFIGURATIONS[name]
    on_cores = running.answer(running.cores(tmp_path_factory, name))[scenario]
    on_cpus = running.answer(running.cpus(tmp_path_factory, configuration.replicas))[scenario]
    for side in (on_cores, on_cpus):
        if "error" in side:
            pytest.fail(side["error"], pytrace=False)
    if configuration.hosts == 1:
        assert on_cores["seen"].keys() == on_cpus["seen"].keys()
    for what, seen in on_cores["seen"].items():
        assert_same(seen, on_cpus["seen"][what], what)
    assert on_cores["clusters"] or scenario in REFUSED
    assert not on_cpus["clusters"]
    for cluster in on_cores["clusters"]:
        assert cluster["compiled"] == has_xla_for_cpu()
        assert set(cluster["on_host"]) <= MAY_BE_ON_HOST.get(scenario, set())


REFUSED = {"refused_on_a_pod", "strings_are_refused"}
MAY_BE_ON_HOST = {
    "outside_compilation": {"PyFunc", "EnsureShape"},
    **{name: {"PrintV2", "StringFormat"} for name in MOVES_TO_HOST},
}


@pytest.mark.parametrize(("name", "scenario"), JAX_CASES)
def test_devices_of_jax_do_what_cpus_do(tmp_path_factory, name, scenario):
    on_jax = running.answer(running.jax_devices(tmp_path_factory))[name][scenario]
    replicas = ON_JAX[name].replicas
    on_cpus = running.answer(running.cpus(tmp_path_factory, replicas))[scenario]
    for side in (on_jax, on_cpus):
        if "error" in side:
            pytest.fail(side["error"], pytrace=False)
    seen = {} if scenario in NOT_ON_JAX else on_cpus["seen"]
    tolerance = BFLOAT16_TOLERANCE if scenario == "bfloat16" else JAX_TOLERANCE
    assert_same(on_jax["seen"], seen, scenario, tolerance)


NOT_ON_JAX = {"outside_compilation", "prints", "train_distribute"}
"""Scenarios that check that JAX's runtime refuses what they do."""


def assert_same(found: Any, expected: Any, path: str, tolerance: float = TOLERANCE) -> None:
    """Equal structures; numbers of either kind within the tolerance."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), path
        for name, value in expected.items():
            assert_same(found[name], value, f"{path}/{name}", tolerance)
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for i, value in enumerate(expected):
            assert_same(found[i], value, f"{path}[{i}]", tolerance)
    elif isinstance(expected, float):
        np.testing.assert_allclose(found, expected, tolerance, tolerance, err_msg=path)
    else:
        assert found == expected, path


def test_marked_ops_run_on_the_host(tmp_path_factory):
    """The marks of `outside_compilation` reach TensorFlow's TPU code."""
    seen = running.answer(running.cores(tmp_path_factory, "four cores"))["outside_compilation"]
    assert any("PyFunc" in cluster["on_host"] for cluster in seen["clusters"])
