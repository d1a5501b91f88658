"""Writes the folder of a saved step: the data for `run_step.py`, and that script itself.

step.json: a description of the folder, and values to compare with.
values.npz: values of variables and of the input, as far as they are saved; and elements of the
  variables after the compared steps.
one.highest, one.default, loop.default: functions of one step and of a loop of steps, as
  `jax.export.deserialize` reads them, with products in float32 or in the chip's own precision.
run_step.py: needs JAX, NumPy and flatbuffers alone.
"""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tpu_estimator_compat.engine.jax import exporting
from tpu_estimator_compat.engine.jax.lowering.step_module import RANDOM_STATE, StepModule
from tpu_estimator_compat.engine.runtime.tuning import DEFAULTS
from tpu_estimator_compat.tools.preflight import run_step

SAMPLES = 1000
"""The most elements of a variable that are compared."""

_SCRIPT = pathlib.Path(__file__).with_name("run_step.py")
_SMALL = 2**16  # bytes of a value up to which it is saved, unless it is constant


@dataclasses.dataclass(frozen=True)
class Value:
    """A variable's first value, or an input: an array, or mean and deviation of numbers to draw.

    Attributes:
      deviation: the standard deviation of random numbers; 0 for a constant `mean`.
    """

    saved: np.ndarray | None
    shape: tuple[int, ...]
    dtype: str
    mean: float = 0.0
    deviation: float = 0.0
    seed: int = 0

    def array(self) -> np.ndarray:
        """The value, made as `run_step.py` makes it."""
        if self.saved is not None:
            return self.saved
        made: np.ndarray = run_step.described(self.described())
        return made

    def described(self) -> dict[str, Any]:
        """The fields as JSON values, without a saved value."""
        fields = dataclasses.asdict(self)
        return {**fields, "shape": list(self.shape), "saved": self.saved is not None}


@dataclasses.dataclass(frozen=True)
class Saved:
    """A step to be saved.

    Attributes:
      module: one replica's step.
      loss: index of the loss among the step's fetches.
      variables: first values by name.
      feeds: inputs of the compared steps, each of shape [steps, ...].
      losses, after: results of TensorFlow on the CPU: the loss of each step, and the variables
        after the last.
      noise: by variable, how much a rounding error in the first values changes it, relatively.
    """

    module: StepModule
    loss: int | None
    variables: dict[str, Value]
    feeds: list[Value]
    losses: list[float] = dataclasses.field(default_factory=list)
    after: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    noise: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def draws(self) -> bool:
        """Whether the step draws random numbers, which differ in TensorFlow's runtime."""
        seeds = [name for name in self.module.variables if name.endswith("seed_generator_state")]
        return RANDOM_STATE in self.module.variables or bool(seeds)


def to_save(values: Mapping[Any, np.ndarray], largest: int) -> dict[Any, Value]:
    """Each value, to be saved as it is or described by its mean and deviation.

    The smallest are saved, until they have `largest` bytes together; beyond that, values of at most
    `_SMALL` bytes and integers: random ones would not be valid ids or labels. Constants never are.
    """
    found: dict[Any, Value] = {}
    left = largest
    for seed, (name, value) in enumerate(sorted(values.items(), key=lambda item: item[1].nbytes)):
        shape, dtype = value.shape, value.dtype.name
        constant = value.size > 1 and bool((value == value.flat[0]).all())
        floating = np.issubdtype(value.dtype, np.floating) or dtype == "bfloat16"
        if constant:
            found[name] = Value(None, shape, dtype, float(value.flat[0]))
        elif value.nbytes <= max(left, _SMALL) or not floating:
            found[name] = Value(value, shape, dtype)
            left -= value.nbytes
        else:
            wide = value.astype(np.float64)
            found[name] = Value(None, shape, dtype, wide.mean(), wide.std(), seed)
    return {name: found[name] for name in values}


def sampled(value: np.ndarray) -> np.ndarray:
    """Evenly spaced elements of a value, as `run_step.py` takes them."""
    flat = np.asarray(value, np.float64).ravel()
    return flat[:: max(1, -(-flat.size // SAMPLES))]


def write(
    saved: Saved, folder: str, platforms: Sequence[str], estimates: Mapping[str, int]
) -> pathlib.Path:
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    bytes_of_step = sum(
        math.prod(feed.shape[1:]) * np.dtype(feed.dtype).itemsize for feed in saved.feeds
    )
    loop = DEFAULTS.steps_of_dispatch(bytes_of_step, None)
    functions = {
        "one.highest": (exporting.precise(saved.module), 1),
        "one.default": (saved.module, 1),
        "loop.default": (saved.module, loop),
    }
    for name, (module, most) in functions.items():
        made = exporting.exported(module, most, saved.loss, platforms)
        (path / name).write_bytes(made)
    np.savez(path / "values.npz", **_arrays(saved))
    described = {
        "platforms": list(platforms),
        "loop": loop,
        "loss": saved.loss,
        "names": list(saved.variables),
        "variables": [value.described() for value in saved.variables.values()],
        "feeds": [value.described() for value in saved.feeds],
        "draws": saved.draws,
        "samples": SAMPLES,
        "losses": saved.losses,
        "noise": dict(saved.noise),
        "estimates": dict(estimates),
    }
    (path / "step.json").write_text(json.dumps(described, indent=1))
    script = path / _SCRIPT.name
    shutil.copyfile(_SCRIPT, script)
    return script


def _arrays(saved: Saved) -> dict[str, Any]:
    kinds = {"variable": saved.variables.values(), "feed": saved.feeds}
    arrays: dict[str, Any] = {
        f"{kind}{i}": _plain(value.saved)
        for kind, values in kinds.items()
        for i, value in enumerate(values)
        if value.saved is not None
    }
    arrays |= {
        f"after{i}": sampled(saved.after[name])
        for i, name in enumerate(saved.variables)
        if name in saved.after
    }
    return arrays


def _plain(value: np.ndarray) -> np.ndarray:
    """The value as `np.load` can read it: bfloat16 as the integers of its bits."""
    return value.view(np.uint16) if value.dtype.name == "bfloat16" else value
