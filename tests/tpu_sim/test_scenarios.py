"""Steps on simulated cores, by TensorFlow's own TPUStrategy, and on JAX's devices: as on CPUs.

No TPU is involved: see `support.simulated_tpu.runtime` for what is simulated.
"""

from typing import Any

import pytest
from support.sides import running
from support.sides.comparing import Tolerance, Tolerances, assert_none, differences

from tpu_estimator_compat.environment import has_xla_for_cpu

from .configurations import CONFIGURATIONS, ON_JAX, Configuration
from .model import MOVES_TO_HOST

pytestmark = pytest.mark.slow


def within(tolerance: float) -> Tolerances:
    return (("*", Tolerance(tolerance, absolute=tolerance)),)


TOLERANCES = within(1e-6)
JAX_TOLERANCES = within(1e-5)  # XLA fuses what TensorFlow computes op by op
# It has 8 bits: a rounding is 2**-8 at most. TensorFlow rounds a layer's product and its sum with
# the bias, XLA neither. (With Eigen's kernels, which some processors get, 1.6 * 2**-8 were seen.)
BFLOAT16_TOLERANCES = within(2 * 2**-8)


def cases(configurations: dict[str, Configuration]) -> list[Any]:
    return [
        pytest.param(name, scenario, marks=[] if each.is_often(scenario) else [pytest.mark.full])
        for name, each in configurations.items()
        for scenario in each.scenarios
    ]


COMPARED = ("calls", "files", "events", "checkpoints")


def seen(found: dict[str, Any], scenario: str) -> dict[str, Any]:
    """What is compared, of what was observed; only CPUs train where the others refuse to."""
    return {kind: found[kind] for kind in COMPARED if kind == "calls" or scenario not in REFUSED}


@pytest.mark.parametrize(("name", "scenario"), cases(CONFIGURATIONS))
def test_cores_do_what_cpus_do(cores, cpus, name, scenario):
    configuration = CONFIGURATIONS[name]
    on_cores = running.completed(cores(name), scenario)
    on_cpus = running.completed(cpus(configuration.replicas), scenario)
    expected = seen(on_cpus, scenario)
    if configuration.hosts > 1:  # a scenario asks less of them
        asked = [call[0] for call in on_cores["calls"]]
        expected["calls"] = [call for call in expected["calls"] if call[0] in asked]
    assert_none(differences(expected, seen(on_cores, scenario), TOLERANCES))
    assert on_cores["result"] or scenario in REFUSED
    for cluster in on_cores["result"]:
        assert cluster["compiled"] == has_xla_for_cpu()
        assert set(cluster["on_host"]) <= MAY_BE_ON_HOST.get(scenario, set())


REFUSED = {"refused_on_a_pod", "strings_are_refused"}
MAY_BE_ON_HOST = {
    "outside_compilation": {"PyFunc", "EnsureShape"},
    **{name: {"PrintV2", "StringFormat"} for name in MOVES_TO_HOST},
}


@pytest.mark.parametrize(("name", "scenario"), cases(ON_JAX))
def test_devices_of_jax_do_what_cpus_do(jax_devices, cpus, name, scenario):
    on_jax = running.completed(jax_devices, f"{name}.{scenario}")
    on_cpus = running.completed(cpus(ON_JAX[name].replicas), scenario)
    if scenario in NOT_ON_JAX:
        assert not on_jax["calls"]
        return
    tolerances = BFLOAT16_TOLERANCES if scenario == "bfloat16" else JAX_TOLERANCES
    assert_none(differences(seen(on_cpus, scenario), seen(on_jax, scenario), tolerances))


NOT_ON_JAX = {"outside_compilation", "prints", "train_distribute"}
"""Scenarios that check that JAX's runtime refuses what they do."""


@pytest.mark.parametrize("scenario", ["outside_compilation"])
def test_marked_ops_run_on_the_host(cores, scenario):
    """The marks of `outside_compilation` reach TensorFlow's TPU code."""
    clusters = running.completed(cores("four cores"), scenario)["result"]
    assert any("PyFunc" in cluster["on_host"] for cluster in clusters)
