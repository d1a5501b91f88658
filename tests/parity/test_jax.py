"""Parity of the runtimes: JAX's devices against TensorFlow's replicas, from a common checkpoint.

The original makes a start for each family; either runtime trains from it; and the original trains
on from what each has left of one family.
"""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from support.sharing import shared
from support.sides import observing, running
from support.sides.comparing import Tolerance, assert_none, differences

from . import runs

pytestmark = [pytest.mark.slow, pytest.mark.parity]

# Those of two replicas ask for the sum over them themselves; see test_replicas.
REPLICAS = {
    "convnet_batch_norm": 1,
    "ema_restore": 2,
    "encoder": 2,
    "gan_two_optimizers": 1,
    "mlp_adam": 2,
    "rnn": 2,
}
HANDED_BACK = "mlp_adam"
STEPS, MORE_STEPS = 50, 5
RUNTIMES = ("tensorflow", "jax")


@pytest.fixture(scope="module")
def trained(asked, ours, starts, tmp_path_factory) -> pathlib.Path:
    """Where the records of either runtime are."""

    def train(out: pathlib.Path) -> None:
        todo = {family: training(starts, family) for family in asked}
        sides = {
            runtime: ours(
                settings={"cpus": max(REPLICAS.values())},
                environment={"TPU_ESTIMATOR_COMPAT_RUNTIME": runtime},
                processes=1,  # which compiles for JAX what several families have in common once
            )
            for runtime in RUNTIMES
        }
        running.run_together(*(runs.doing(sides[r], todo, out / r) for r in RUNTIMES))

    return shared(tmp_path_factory, "runtimes", train)


def training(starts: pathlib.Path, family: str) -> dict[str, Any]:
    """What either runtime does for a family; there is a checkpoint of every step."""
    return {
        "family": family,
        "start": runs.model_dir(starts, family),
        "use_tpu": True,
        "num_shards": REPLICAS[family],
        "train_steps": STEPS,
        "save_checkpoints_steps": 1,
        "keep_checkpoint_max": STEPS + 1,
    }


def variables(out: pathlib.Path, family: str, step: int) -> dict[str, Any]:
    """Those of a checkpoint."""
    folder = runs.model_dir(out, family)
    return observing.variables(f"{folder}/model.ckpt-{step}", observing.Texts(folder))


@pytest.mark.parametrize("family", REPLICAS)
def test_one_step(trained, family):
    """Every variable, slots included, within 1e-5 of its largest value."""
    found, expected = (
        variables(trained / r, family, runs.FIRST + 1) for r in ("jax", "tensorflow")
    )
    within = (("*", Tolerance(1e-5, of_largest=True)),)
    assert_none(differences(expected, found, within))


@pytest.mark.parametrize("family", REPLICAS)
def test_losses(trained, family):
    """Of 50 steps, to 1e-5."""
    found, expected = (
        running.completed(trained / r, family)["result"] for r in ("jax", "tensorflow")
    )
    assert len(found["losses"]) == STEPS
    assert_none(differences(expected, found))


@pytest.mark.parametrize("family", [HANDED_BACK])
def test_the_original_goes_on_from_it(trained, theirs, tmp_path, family):
    """From what JAX's runtime has written, as from what TensorFlow's has."""
    more = {
        runtime: {
            "family": family,
            "start": runs.model_dir(trained / runtime, family),
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
