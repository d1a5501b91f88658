"""Parity of replicas: 2 and 4 logical CPUs against one, at the same global batch.

The families are those of the parity tests that ask for the sum over the replicas themselves, by
CrossShardOptimizer or cross_replica_sum, and whose maths does not see the replica's batch (batch
norm's does). The original never ran them off a TPU, so one replica is the reference.
"""

from __future__ import annotations

import pathlib
import sys

import pytest
from support.sharing import shared

from . import compare, runs
from .compare import assert_none

pytestmark = pytest.mark.slow

FAMILIES = ["mlp_adam", "encoder", "rnn", "ema_restore"]
STEPS = 50
RTOL = 1e-5


@pytest.fixture(params=FAMILIES)
def replicated(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, runs.Record]:
    """The record of the same training by number of replicas."""
    family = request.param
    root = shared(tmp_path_factory, f"replicas-{family}", lambda out: train(family, out))
    return {count: runs.read(root / str(count))["trained"] for count in (1, 2, 4)}


def train(family: str, root: pathlib.Path) -> None:
    """One process per number of replicas, from a checkpoint that the first one makes."""
    for count in (1, 2, 4):
        # A loop that does not divide the steps, and hooks that see only the ends of loops: the
        # losses on the way are those of the checkpoints, evaluated.
        run = {
            "name": "trained",
            "start": str(root / "1" / "start"),
            "train_steps": STEPS,
            "record_losses": False,
            "use_tpu": True,
            "iterations_per_loop": 7,
            "evaluate_steps": 4,
            "evaluate_every_checkpoint": True,
            "predict": True,
        }
        start = {**run, "name": "start", "start": None, "train_steps": 2}
        start.update({"evaluate_steps": None, "evaluate_every_checkpoint": False, "predict": False})
        todo = [start, run] if count == 1 else [run]
        runs.drive(sys.executable, "ours", family, root / str(count), todo, logical_cpus=count)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_model_fn_sees_a_share(replicated, count):
    """Each replica's model_fn is told and given its share of the global batch."""
    calls = {call["mode"]: call for call in replicated[count].checked().fields["calls"]}
    one = {call["mode"]: call for call in replicated[1].fields["calls"]}
    for mode, call in calls.items():
        assert call["told"] == call["given"] == one[mode]["told"] // count, mode
    assert calls["train"]["shards"] == count


@pytest.mark.parametrize("count", [2, 4])
def test_variables(replicated, count):
    """After 50 steps every variable, slots included, agrees with one replica's."""
    one, several = replicated[1].checked(), replicated[count].checked()
    assert one.variables["global_step"] == 2 + STEPS
    assert_none(compare.arrays(several.variables, one.variables, RTOL))


@pytest.mark.parametrize("count", [2, 4])
def test_evaluate(replicated, count):
    """Every checkpoint evaluates to the same, metrics concatenated over the replicas."""
    one, several = replicated[1].checked(), replicated[count].checked()
    expected = one.fields["evaluate_by_checkpoint"]
    assert several.fields["evaluate_by_checkpoint"].keys() == expected.keys()
    for checkpoint, result in several.fields["evaluate_by_checkpoint"].items():
        assert_none(compare.results(result, expected[checkpoint], RTOL))


@pytest.mark.parametrize("count", [2, 4])
def test_predict(replicated, count):
    """Predictions come in the order of the examples, the last batch's padding taken out."""
    one, several = replicated[1].checked(), replicated[count].checked()
    assert_none(compare.arrays(several.predictions, one.predictions, RTOL))
