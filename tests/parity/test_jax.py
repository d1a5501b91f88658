"""Parity of the runtimes: JAX's devices against TensorFlow's replicas, from a common checkpoint.

For each family the original makes a start; either runtime trains from it, in a process of its own;
and the original trains on from what each has left.
"""

from __future__ import annotations

import functools
import pathlib
import sys

import pytest
from support.original import Original
from support.sharing import shared

from . import compare, runs
from .compare import assert_none

pytestmark = [pytest.mark.slow, pytest.mark.parity]

REPLICAS = {"mlp_adam": 2}
STEPS, MORE_STEPS = 50, 5
ONE_STEP_RTOL = 1e-5


@pytest.fixture(params=REPLICAS)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def records(
    family: str, original: Original, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, runs.Record]:
    """By runtime and run, such as `jax/fifty`; and `jax/continued`, by the original."""
    make = functools.partial(exchange, original.python, family)
    root = shared(tmp_path_factory, f"runtimes-{family}", make)
    return {
        f"{part}/{name}": record
        for part in ("tensorflow", "jax", "back")
        for name, record in runs.read(root / part).items()
    }


def exchange(python: str, family: str, root: pathlib.Path) -> None:
    """The four processes."""
    start = root / "original" / "start"
    runs.drive(python, "original", family, start.parent, [{"name": "start", "train_steps": 2}])
    for runtime in ("tensorflow", "jax"):
        common = {"start": str(start), "use_tpu": True}
        todo = [
            {"name": "one", "train_steps": 1, **common},
            {"name": "fifty", "train_steps": STEPS, "evaluate_steps": 4, "predict": True, **common},
        ]
        runs.drive(
            sys.executable,
            "ours",
            family,
            root / runtime,
            todo,
            logical_cpus=REPLICAS[family],
            environment={"TPU_ESTIMATOR_COMPAT_RUNTIME": runtime},
        )
    more = [
        {"name": runtime, "start": str(root / runtime / "fifty"), "train_steps": MORE_STEPS}
        for runtime in ("tensorflow", "jax")
    ]
    runs.drive(python, "original", family, root / "back", more)


def pair(records: dict[str, runs.Record], name: str) -> tuple[runs.Record, runs.Record]:
    return records[f"jax/{name}"].checked(), records[f"tensorflow/{name}"].checked()


def test_one_step(records):
    """Every variable, slots included, within 1e-5 of its largest value."""
    found, expected = pair(records, "one")
    assert expected.variables["global_step"] == 3
    assert_none(compare.arrays(found.variables, expected.variables, ONE_STEP_RTOL))


def test_losses(records):
    """Of 50 steps, to 1e-5."""
    found, expected = pair(records, "fifty")
    assert len(found.losses) == STEPS
    assert_none(compare.losses(found.losses, expected.losses))
    assert_none(compare.results(found.evaluate, expected.evaluate, 1e-4))


def test_the_original_goes_on_from_it(records):
    """From what JAX's runtime has written, as from what TensorFlow's has."""
    found, expected = records["back/jax"].checked(), records["back/tensorflow"].checked()
    assert found.variables["global_step"] == 2 + STEPS + MORE_STEPS
    assert found.variables.keys() == expected.variables.keys()
    assert_none(compare.losses(found.losses, expected.losses, 1e-4))
