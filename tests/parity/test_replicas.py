"""Parity of replicas: 2 and 4 logical CPUs against one, at the same global batch.

The families are those of the parity tests that ask for the sum over the replicas themselves, by
CrossShardOptimizer or cross_replica_sum, and whose maths does not see the replica's batch (batch
norm's does). The original never ran them off a TPU, so one replica is the reference.
"""

import pathlib
from typing import Any

import pytest
from support.sharing import shared
from support.sides import running
from support.sides.comparing import assert_none, differences

from . import runs

pytestmark = pytest.mark.slow

FAMILIES = ["mlp_adam", "encoder", "rnn", "ema_restore"]
STEPS = 50
COUNTS = (1, 2, 4)
TOLERANCES = runs.tolerances(variables=1e-5)


@pytest.fixture(scope="module")
def replicated(asked, ours, tmp_path_factory) -> pathlib.Path:
    asked = [family for family in asked if family in FAMILIES]

    def train(out: pathlib.Path) -> None:
        start = {"use_tpu": True, "iterations_per_loop": 7, "train_steps": 2}
        starts = {family: {"family": family, **start} for family in asked}
        one = ours(settings={"cpus": 1})
        running.run_together(runs.doing(one, starts, out / "starts"))
        todo = {family: training(out / "starts", family) for family in asked}
        for count in COUNTS:
            side = ours(settings={"cpus": count})
            running.run_together(runs.doing(side, todo, out / str(count)))

    return shared(tmp_path_factory, "replicas", train)


def training(starts: pathlib.Path, family: str) -> dict[str, Any]:
    # A loop that does not divide the steps, and hooks that see only the ends of loops: the
    # losses on the way are those of the checkpoints, evaluated.
    return {
        "family": family,
        "start": runs.model_dir(starts, family),
        "train_steps": STEPS,
        "record_losses": False,
        "use_tpu": True,
        "iterations_per_loop": 7,
        "evaluate_steps": 4,
        "evaluate_every_checkpoint": True,
        "predict": True,
    }


def calls(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By mode, the last call of model_fn."""
    return {call["mode"]: call for [call] in found["calls"]}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("count", COUNTS)
def test_model_fn_sees_a_share(replicated, family, count):
    """Each replica's model_fn is told and given its share of the global batch."""
    one, several = (calls(running.completed(replicated / str(n), family)) for n in (1, count))
    assert several.keys() == one.keys()
    for mode, call in several.items():
        assert call["told"] == call["given"] == one[mode]["told"] // count, mode
    assert several["train"]["shards"] == count


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("count", [2, 4])
def test_several_do_what_one_does(replicated, family, count):
    """Variables after 50 steps, slots included; evaluations of all checkpoints; predictions."""
    one, several = (running.completed(replicated / str(n), family) for n in (1, count))
    assert runs.step(one) == 2 + STEPS
    assert len(one["result"]["evaluate_by_checkpoint"]) > 2
    assert one["result"]["predictions"]
    same = ("result", "checkpoints", "files")
    assert_none(differences(*({k: each[k] for k in same} for each in (one, several)), TOLERANCES))
