"""Parity with the original: the same model files, live, from a common checkpoint.

For each family the sides exchange checkpoints:

1. the original makes a start; both train 50 steps from it, evaluate and predict;
2. both train on, from either's result; this package evaluates and predicts of the original's.
"""

import pathlib
from typing import Any

import pytest
from support import families
from support.sharing import shared
from support.sides import running
from support.sides.comparing import assert_none, differences

from . import runs

pytestmark = [pytest.mark.slow, pytest.mark.parity]

STEPS, MORE_STEPS = 50, 10
TOLERANCES = runs.tolerances(variables=1e-4)


@pytest.fixture(scope="module")
def root(asked, theirs, ours, starts, tmp_path_factory) -> pathlib.Path:
    def exchange(out: pathlib.Path) -> None:
        original, package = out / "original", out / "ours"
        trained = {f"{f}.trained": training(runs.model_dir(starts, f), f) for f in asked}
        running.run_together(
            runs.doing(theirs, trained, original), runs.doing(ours(), trained, package)
        )
        more: runs.Runs = {}
        serving: runs.Runs = {}
        for f in asked:
            for side in (original, package):
                fields = {"family": f, "start": runs.model_dir(side, f"{f}.trained")}
                more[f"{f}.continues_{side.name}"] = {**fields, "train_steps": MORE_STEPS}
                if side == original:
                    serving[f"{f}.serves"] = {**fields, "evaluate_steps": 4, "predict": True}
        running.run_together(
            runs.doing(theirs, more, original), runs.doing(ours(), more | serving, package)
        )

    return shared(tmp_path_factory, "parity", exchange)


def training(start: str, family: str) -> dict[str, Any]:
    # Four checkpoints are written (at the start, 22, 42, 52), so the first must be deleted.
    return {
        "family": family,
        "start": start,
        "train_steps": STEPS,
        "save_checkpoints_steps": 20,
        "keep_checkpoint_max": 3,
        "evaluate_steps": 4,
        "predict": True,
    }


@pytest.mark.parametrize("family", families.NAMES)
def test_training(root, family):
    """All that is observed, of it: calls of model_fn, losses, checkpoints, results, predictions."""
    original, ours = (
        running.completed(root / s, f"{family}.trained") for s in ("original", "ours")
    )
    assert runs.step(original) == runs.FIRST + STEPS
    assert len(original["result"]["losses"]) == STEPS
    assert original["result"]["predictions"]
    assert_none(differences(original, ours, TOLERANCES))


@pytest.mark.parametrize("family", families.NAMES)
def test_serving(root, family):
    """Of the original's checkpoint, results of evaluate and predict are the original's."""
    original = running.completed(root / "original", f"{family}.trained")["result"]
    ours = running.completed(root / "ours", f"{family}.serves")["result"]
    expected = {kind: original[kind] for kind in ("evaluate", "predictions")}
    assert_none(differences({"result": expected}, {"result": ours}, TOLERANCES))


@pytest.mark.parametrize("family", families.NAMES)
@pytest.mark.parametrize("whose", ["original", "ours"])
def test_continuing(root, family, whose):
    """Either side goes on from a checkpoint, its own or the other's, as the other does."""
    name = f"{family}.continues_{whose}"
    original, ours = (running.completed(root / side, name) for side in ("original", "ours"))
    assert runs.step(original) == runs.FIRST + STEPS + MORE_STEPS
    assert_none(differences(original, ours, TOLERANCES))
