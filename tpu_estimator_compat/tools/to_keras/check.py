"""Runs a written model in a process with Keras alone, and compares it with the original."""

from __future__ import annotations

import math
import os
import pathlib
import pickle
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tpu_estimator_compat.tools import child_process
from tpu_estimator_compat.tools.to_keras.graph import Bound, Weight
from tpu_estimator_compat.tools.to_keras.report import Comparison
from tpu_estimator_compat.tools.to_keras.samples import Samples
from tpu_estimator_compat.tools.to_keras.text import Written

_ALONE = pathlib.Path(__file__).with_name("alone.py")
_GRADIENTS = 100.0  # times the tolerance of outputs: they add up over the whole batch


Arrays = Mapping[str, np.ndarray]


class DoesNotRunError(Exception):
    """The written model failed; the message says at which line, and why."""


def check(
    written: Written, samples: Samples, tolerance: float, folder: pathlib.Path
) -> list[Comparison]:
    """Writes `model.py` and `model.weights.h5` to a folder, runs the model, and compares.

    Raises DoesNotRunError where it fails.
    """
    (folder / "model.py").write_text(written.text)
    (folder / "given.pickle").write_bytes(pickle.dumps(_given(written, samples)))
    log = folder / "log"
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1"}
    process = child_process.start(
        [sys.executable, "-P", str(_ALONE), str(folder)], log, environment=environment
    )
    if (ending := child_process.wait(process)).code != 0:
        [*_, last] = ["", *log.read_text(errors="replace").splitlines()]
        raise DoesNotRunError(f"The process of the Keras model {ending}: {last}")
    found = pickle.loads((folder / "found.pickle").read_bytes())
    if "error" in found:
        raise DoesNotRunError(found["error"])
    kept = [name for name in samples.outputs[0] if name in written.program.outputs]
    return list(_compared(written.weights, samples, kept, found, tolerance))


def _given(written: Written, samples: Samples) -> dict[str, Any]:
    weights, training = written.weights, written.training
    slots = training.slots if training else {}
    points = [{path: bound.value(p) for path, bound in weights.items()} for p in samples.points]
    return {
        "compiled": training is not None,
        "weights": {path: bound.value() for path, bound in weights.items()},
        "slots": {attribute: _bound(weights, arrays) for attribute, arrays in slots.items()},
        "step": training.step if training else 0,
        "features": samples.features,
        "labels": samples.labels,
        "evaluates": bool(training and training.loss and training.metrics),
        "losses": dict.fromkeys(samples.losses if training and training.loss else (), points),
    }


def _bound(weights: Mapping[str, Bound], arrays: Arrays) -> dict[str, Any]:
    """By path, slots or gradients in the form that the weight has."""
    return {
        path: bound.arranged(arrays)
        for path, bound in weights.items()
        if all(weight.name in arrays for weight in bound.weights)
    }


def _compared(
    weights: Mapping[str, Bound],
    samples: Samples,
    names: list[str],
    found: dict[str, Any],
    tolerance: float,
) -> Iterator[Comparison]:
    for name in names:  # what is left out is in the notes
        pairs = zip(samples.outputs, found["outputs"], strict=True)
        largest = max(difference(b.get(name), a[name]) for a, b in pairs)
        yield Comparison("output", name, largest, tolerance)
    for name in found["metrics"].keys() & samples.metrics.keys():
        largest = difference(np.asarray(found["metrics"][name]), samples.metrics[name])
        yield Comparison("metric", name, largest, tolerance)
    if found["losses"]:  # what is trained twice goes two ways
        for name in _copied(weights):
            yield Comparison("weight", f"{name}, more than once", float("inf"), tolerance)
    for training, points in found["losses"].items():
        expected = samples.losses[training]
        where = "in training" if training else "in evaluation"
        largest = difference(np.asarray(points[0][0]), np.asarray(expected[0][0]))
        yield Comparison("loss", where, largest, tolerance)
        each = [
            _of_gradients(found, _bound(weights, arrays))
            for (_, found), (_, arrays) in zip(points, expected, strict=True)
        ]
        for path in each[0]:  # a NaN at one point is one of all
            least = float(np.min([found[path] for found in each]))
            yield Comparison("gradient", f"{path} {where}", least, _GRADIENTS * tolerance)


def _of_gradients(found: Arrays, expected: Arrays) -> dict[str, float]:
    """By path, the largest difference of gradients at one point."""
    largest = {path: np.abs(array).max(initial=0) for path, array in expected.items()}
    # A gradient that is zero but for rounding, of a bias before a normalization, say.
    small = 1e-2 * max(largest.values(), default=1) or 1
    differences = {
        path: difference(found.get(path), array, max(largest[path], small))
        for path, array in expected.items()
    }
    others = found.keys() - expected.keys()  # the original's optimizer changes no such variable
    return differences | {path: float("inf") for path in others if np.any(found[path])}


def _copied(weights: Mapping[str, Bound]) -> list[str]:
    """Variables of which the model has more elements than there are."""
    counts: dict[Weight, float] = {}
    for bound in weights.values():
        for weight in bound.weights:
            ones = {each.name: np.full(each.shape, each is weight) for each in bound.weights}
            counts[weight] = counts.get(weight, 0) + np.sum(bound.arranged(ones))
    return [weight.name for weight, n in counts.items() if n > math.prod(weight.shape)]


def difference(found: Any, expected: np.ndarray, scale: float = 1.0) -> float:
    """The largest difference, relative to values that are above `scale`; infinite without a twin.

    Of integers and strings, 1 where one differs.
    """
    if found is None or np.shape(found) != expected.shape:
        return float("inf")
    if expected.dtype.kind in "biuSUO":
        return float(np.any(np.asarray(found) != expected))
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    actual, wanted = np.asarray(found).astype(wide), expected.astype(wide)
    same = (actual == wanted) | (np.isnan(actual) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        errors = np.abs(actual - wanted) / np.maximum(scale, np.abs(wanted))
    return float(np.max(np.where(same, 0.0, errors), initial=0.0))
