"""Runs of model families, and how near their results must be."""

import dataclasses
import pathlib
import sys
from typing import Any

from support.sides import running
from support.sides.comparing import Tolerance, Tolerances

OPTIONS = {"keeps_homes": True, "largest": sys.maxsize}
"""Of sides: other runs start from what a run leaves; all values of variables are compared."""

FIRST = 2
"""Steps of the starts."""

Runs = dict[str, dict[str, Any]]
"""Fields of `setting.Run`, by names."""


def tolerances(variables: float) -> Tolerances:
    """Those of losses and evaluations, of predictions, and as given of variables."""
    return (
        ("checkpoints.*.variables.*", Tolerance(variables, of_largest=True)),
        ("result.predictions.*", Tolerance(1e-5, of_largest=True)),
        ("*", Tolerance(1e-5)),
    )


def doing(
    side: running.Side, runs: Runs, out: pathlib.Path
) -> tuple[running.Side, tuple[str, ...], pathlib.Path]:
    """What `running.run_together` takes: a side that knows the runs, their names, and a place."""
    settings = {**side.settings, "runs": runs}
    return dataclasses.replace(side, settings=settings), tuple(runs), out


def model_dir(out: pathlib.Path, name: str) -> str:
    return str(out / f"{name}.home" / "model")


def variables(found: dict[str, Any]) -> dict[str, Any]:
    return found["checkpoints"]["model"]["variables"]


def step(found: dict[str, Any]) -> int:
    return variables(found)["global_step"][""]
