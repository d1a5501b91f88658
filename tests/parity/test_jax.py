"""Parity of the runtimes: JAX's devices against TensorFlow's replicas, from a common checkpoint.

The original makes a start for each family; either runtime trains from it; and the original trains
on from what each has left of one family.
"""

import pathlib
from typing import Any

import pytest
from support.sharing import shared
from support.sides import observing, running
from support.sides.comparing import Tolerance, assert_none, differences

from . import runs

pytestmark = [pytest.mark.slow, pytest.mark.parity]

# Those of several replicas ask for the sum over them themselves; see test_replicas.
REPLICAS = {
    "convnet_batch_norm": [1],
    "ema_restore": [2, 4],
    "encoder": [2, 4],
    "gan_two_optimizers": [1],
    "mlp_adam": [2, 4],
    "rnn": [2, 4],
}
CASES = [
    pytest.param(f"{family}-{count}", marks=[pytest.mark.full] if count > 2 else [])
    for family, counts in REPLICAS.items()
    for count in counts
]
HANDED_BACK = "mlp_adam-2"
STEPS, MORE_STEPS = 50, 5
RUNTIMES = ("tensorflow", "jax")


@pytest.fixture(scope="module")
def trained(request, ours, starts, tmp_path_factory) -> pathlib.Path:
    """Where the records of either runtime are."""
    cases = sorted(running.asked_for(request.session, "parity", "case"))

    def train(out: pathlib.Path) -> None:
        todo = {case: training(starts, case) for case in cases}
        sides = {
            runtime: ours(
                settings={"cpus": 4},
                environment={"TPU_ESTIMATOR_COMPAT_RUNTIME": runtime},
                processes=1,  # which compiles for JAX what several families have in common once
            )
            for runtime in RUNTIMES
        }
        running.run_together(*(runs.doing(sides[r], todo, out / r) for r in RUNTIMES))

    return shared(tmp_path_factory, "runtimes", train)


def training(starts: pathlib.Path, case: str) -> dict[str, Any]:
    """What either runtime does for a family; there is a checkpoint of every step."""
    family, _, replicas = case.rpartition("-")
    return {
        "family": family,
        "start": runs.model_dir(starts, family),
        "use_tpu": True,
        "num_shards": int(replicas),
        "train_steps": STEPS,
        "save_checkpoints_steps": 1,
        "keep_checkpoint_max": STEPS + 1,
    }


def variables(out: pathlib.Path, case: str, step: int) -> dict[str, Any]:
    folder = runs.model_dir(out, case)
    return observing.variables(f"{folder}/model.ckpt-{step}", observing.Texts(folder))


@pytest.mark.parametrize("case", CASES)
def test_one_step(trained, case):
    """Every variable, slots included, within 1e-5 of its largest value."""
    found, expected = (variables(trained / r, case, runs.FIRST + 1) for r in ("jax", "tensorflow"))
    within = (("*", Tolerance(1e-5, of_largest=True)),)
    assert_none(differences(expected, found, within))


@pytest.mark.parametrize("case", CASES)
def test_losses(trained, case):
    found, expected = (
        running.completed(trained / r, case)["result"] for r in ("jax", "tensorflow")
    )
    assert len(found["losses"]) == STEPS
    assert_none(differences(expected, found))


@pytest.mark.parametrize("case", [HANDED_BACK])
def test_the_original_goes_on_from_it(trained, theirs, tmp_path, case):
    """From what JAX's runtime has written, as from what TensorFlow's has."""
    more = {
        runtime: {
            "family": case.rpartition("-")[0],
            "start": runs.model_dir(trained / runtime, case),
            "train_steps": MORE_STEPS,
        }
        for runtime in RUNTIMES
    }
    running.run_together(runs.doing(theirs, more, tmp_path))
    found, expected = (running.completed(tmp_path, runtime) for runtime in ("jax", "tensorflow"))
    assert runs.step(found) == runs.FIRST + STEPS + MORE_STEPS
    assert runs.variables(found).keys() == runs.variables(expected).keys()
    losses = [each["result"] for each in (expected, found)]
    assert_none(differences(*losses, (("*", Tolerance(1e-4)),)))
