"""Parity of the runtimes: JAX's devices against TensorFlow's replicas, from a common checkpoint.

The original makes a start for each family; either runtime trains from it, in one process for all
families; and the original trains on from what each has left of one family.
"""

from __future__ import annotations

import functools
import pathlib
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from support.original import Original
from support.sharing import shared

from . import compare, runs
from .compare import assert_none

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
FIRST, STEPS, MORE_STEPS = 2, 50, 5
ONE_STEP_RTOL = 1e-5


@pytest.fixture
def records(original: Original, tmp_path_factory: pytest.TempPathFactory) -> runs.Records:
    """By runtime and family, such as `jax/rnn`; and `back/jax`, by the original."""
    root = shared(tmp_path_factory, "runtimes", functools.partial(exchange, original.python))
    return {
        f"{part}/{name}": record
        for part in ("tensorflow", "jax", "back")
        for name, record in runs.read(root / part).items()
    }


def exchange(python: str, root: pathlib.Path) -> None:
    """The four processes."""
    starts = [{"name": name, "family": name, "train_steps": FIRST} for name in REPLICAS]
    runs.drive(python, "original", None, root / "original", starts)
    todo = [training(root, family) for family in REPLICAS]
    for runtime in ("tensorflow", "jax"):
        runs.drive(
            sys.executable,
            "ours",
            None,
            root / runtime,
            [dict(run) for run in todo],
            logical_cpus=max(REPLICAS.values()),
            environment={"TPU_ESTIMATOR_COMPAT_RUNTIME": runtime},
        )
    more = [
        {
            "name": runtime,
            "start": str(root / runtime / HANDED_BACK),
            "train_steps": MORE_STEPS,
        }
        for runtime in ("tensorflow", "jax")
    ]
    runs.drive(python, "original", HANDED_BACK, root / "back", more)


def training(root: pathlib.Path, family: str) -> dict[str, Any]:
    """What either runtime does for a family; there is a checkpoint of every step."""
    return {
        "name": family,
        "family": family,
        "start": str(root / "original" / family),
        "use_tpu": True,
        "num_shards": REPLICAS[family],
        "train_steps": STEPS,
        "save_checkpoints_steps": 1,
        "keep_checkpoint_max": STEPS + 1,
    }


def pair(records: runs.Records, name: str) -> tuple[runs.Record, runs.Record]:
    return records[f"jax/{name}"].checked(), records[f"tensorflow/{name}"].checked()


def variables(record: runs.Record, step: int) -> dict[str, np.ndarray]:
    """Those of a checkpoint."""
    directory = record.out / record.name
    reader = tf.train.load_checkpoint(str(directory / f"model.ckpt-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.mark.parametrize("family", REPLICAS)
def test_one_step(records, family):
    """Every variable, slots included, within 1e-5 of its largest value."""
    found, expected = (variables(record, FIRST + 1) for record in pair(records, family))
    assert_none(compare.arrays(found, expected, ONE_STEP_RTOL))


@pytest.mark.parametrize("family", REPLICAS)
def test_losses(records, family):
    """Of 50 steps, to 1e-5."""
    found, expected = pair(records, family)
    assert len(found.losses) == STEPS
    assert_none(compare.losses(found.losses, expected.losses))


def test_the_original_goes_on_from_it(records):
    """From what JAX's runtime has written, as from what TensorFlow's has."""
    found, expected = records["back/jax"].checked(), records["back/tensorflow"].checked()
    assert found.variables["global_step"] == FIRST + STEPS + MORE_STEPS
    assert found.variables.keys() == expected.variables.keys()
    assert_none(compare.losses(found.losses, expected.losses, 1e-4))
