"""Parity with the original: the same model files, live, from a common checkpoint.

For each family three short processes exchange checkpoints:

1. the original makes a start, trains 50 steps from it, evaluates and predicts, trains on;
2. this package does the same from that start, and trains on from the original's result;
3. the original trains on from this package's result.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest
from support import families
from support.original import Original
from support.sharing import shared

from . import compare, runs
from .compare import assert_none

pytestmark = [pytest.mark.slow, pytest.mark.parity]

STEPS, MORE_STEPS = 50, 10


@pytest.fixture(params=families.NAMES)
def sides(
    request: pytest.FixtureRequest,
    original: Original,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[runs.Records, runs.Records]:
    """Records of the original and of this package for one family."""
    family = request.param
    root = shared(
        tmp_path_factory, f"sides-{family}", lambda out: exchange(original.python, family, out)
    )
    return runs.read(root / "original") | runs.read(root / "back"), runs.read(root / "ours")


def trained(start: pathlib.Path) -> dict[str, Any]:
    # Four checkpoints are written (at the start, 22, 42, 52), so the first must be deleted.
    return {
        "name": "trained",
        "start": str(start),
        "train_steps": STEPS,
        "save_checkpoints_steps": 20,
        "keep_checkpoint_max": 3,
        "evaluate_steps": 4,
        "predict": True,
    }


def more(name: str, start: pathlib.Path) -> dict[str, Any]:
    return {"name": name, "start": str(start), "train_steps": MORE_STEPS}


def exchange(python: str, family: str, root: pathlib.Path) -> None:
    """The three processes; their records go to original/, ours/ and back/."""
    original, ours = root / "original", root / "ours"
    made = [{"name": "start", "train_steps": 2}, trained(original / "start")]
    made.append(more("continues_original", original / "trained"))
    runs.drive(python, "original", family, original, made)
    done = [
        trained(original / "start"),
        {
            "name": "serves_original",
            "start": str(original / "trained"),
            "evaluate_steps": 4,
            "predict": True,
        },
        more("continues_original", original / "trained"),
        more("continues_ours", ours / "trained"),
    ]
    runs.drive(sys.executable, "ours", family, ours, done)
    back = [more("continues_ours", ours / "trained")]
    runs.drive(python, "original", family, root / "back", back)


def pair(sides: tuple[runs.Records, runs.Records], name: str) -> tuple[runs.Record, runs.Record]:
    """This package's and the original's record of a run; fails if either run did."""
    original, ours = sides
    return ours[name].checked(), original[name].checked()


def test_model_fn_calls(sides):
    """model_fn is called as often, for the same modes, told the same batch sizes."""
    ours, original = pair(sides, "trained")
    assert ours.fields["calls"] == original.fields["calls"]


def test_losses(sides):
    """The losses of 50 steps agree to 1e-5, relatively."""
    ours, original = pair(sides, "trained")
    assert len(original.losses) == STEPS
    assert_none(compare.losses(ours.losses, original.losses))


def test_checkpoint_variables(sides):
    """The last checkpoint has the same names, shapes and dtypes; values agree to 1e-4."""
    ours, original = pair(sides, "trained")
    assert original.variables["global_step"] == 2 + STEPS
    assert_none(compare.arrays(ours.variables, original.variables, compare.VARIABLE_RTOL))


def test_checkpoint_files(sides):
    """model_dir has the same files, and the state file names the same checkpoints."""
    ours, original = pair(sides, "trained")
    assert ours.fields["files"] == original.fields["files"]
    assert ours.fields["state"] == original.fields["state"]


@pytest.mark.parametrize("run", ["serves_original", "trained"])
def test_evaluate(sides, run):
    """The same keys and types, values to 1e-5: of one checkpoint, and of each side's own."""
    original, ours = sides[0]["trained"].checked(), sides[1][run].checked()
    assert_none(compare.results(ours.evaluate, original.evaluate))


@pytest.mark.parametrize("run", ["serves_original", "trained"])
def test_predict(sides, run):
    """Predictions agree to 1e-5, the partial last batch included; checkpoints as above."""
    original, ours = sides[0]["trained"].checked(), sides[1][run].checked()
    assert original.predictions
    assert_none(compare.arrays(ours.predictions, original.predictions, compare.RESULT_RTOL))


@pytest.mark.parametrize("whose", ["continues_original", "continues_ours"])
def test_continuing(sides, whose):
    """Either side goes on from a checkpoint, its own or the other's, as the other does."""
    ours, original = pair(sides, whose)
    assert original.variables["global_step"] == 2 + STEPS + MORE_STEPS
    assert_none(compare.losses(ours.losses, original.losses))
    assert_none(compare.arrays(ours.variables, original.variables, compare.VARIABLE_RTOL))
    assert ours.fields["state"] == original.fields["state"]
