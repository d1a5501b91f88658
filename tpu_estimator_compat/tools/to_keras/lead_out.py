"""Leads a model out: converts it, checks what was written, and puts the files in their place."""

from __future__ import annotations

import functools
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config.arguments import check_input_fn, check_number, check_path
from tpu_estimator_compat.engine.modes.rules import InputFn
from tpu_estimator_compat.engine.signals.activity import Activity
from tpu_estimator_compat.tools import child_process
from tpu_estimator_compat.tools.to_keras import convert, samples, script
from tpu_estimator_compat.tools.to_keras.check import DoesNotRunError, check
from tpu_estimator_compat.tools.to_keras.placing import place, targets
from tpu_estimator_compat.tools.to_keras.report import Report, Verdict
from tpu_estimator_compat.tools.to_keras.samples import Samples
from tpu_estimator_compat.tools.to_keras.saved_model import of_saved_model
from tpu_estimator_compat.tools.to_keras.text import Written, of_tensorflow
from tpu_estimator_compat.tools.to_keras.training.steps import step_of

GLOBAL_STEP = tf.compat.v1.GraphKeys.GLOBAL_STEP
__all__ = ["Report", "estimator", "saved_model"]


def saved_model(
    source: str,
    out: str,
    signature: str | None = None,
    tags: Sequence[str] = ("serve",),
    tolerance: float = 1e-5,
    *,
    replace: bool = False,
) -> Report:
    """Leads a SavedModel out; raises ValueError or OSError for arguments that cannot work."""
    placed = targets(out, replace=replace)
    with Activity("Reading the SavedModel") as tell:
        program = of_saved_model(source, signature, tags)
        data = samples.of_signature(source, signature, tags, program)
        make = functools.partial(convert.convert, program)
        return _lead_out(source, make, data, placed, tolerance, tell)


def estimator(
    estimator: Any,
    input_fn: InputFn,
    out: str | os.PathLike[str],
    tolerance: float = 1e-5,
    *,
    replace: bool = False,
) -> Report:
    """Leads an estimator out; arguments as in `Estimator.to_keras`."""
    check_input_fn(input_fn)
    check_path(out, "out")
    check_number(tolerance, "tolerance", least=0)
    placed = targets(out, replace=replace)
    with Activity("Capturing model_fn") as tell:
        modes = script.of_estimator(estimator, input_fn)
        step = step_of(modes)
        data = samples.of_modes(modes, step)
        make = functools.partial(convert.of_modes, modes, step)
        return _lead_out(type(estimator).__name__, make, data, placed, tolerance, tell)


def _lead_out(
    source: str,
    make: Callable[[], Written],
    data: Samples,
    placed: tuple[pathlib.Path, pathlib.Path],
    tolerance: float,
    tell: Activity,
) -> Report:
    told = source, str(placed[0])
    tell("Writing the Keras model")
    try:
        written = make()
    except convert.RefusedError as error:
        return Report(*told, Verdict.REFUSED, log=str(error))
    with child_process.temporary_folder("to_keras_") as folder:
        tell("Running both models")
        try:
            compared = check(written, data, tolerance, folder)
        except DoesNotRunError as error:
            return Report(*told, Verdict.FAILS, log=str(error))
        verdict = Verdict.EQUAL if all(c.agrees for c in compared) else Verdict.DIFFERS
        if verdict is Verdict.EQUAL:
            place([folder / "model.py", folder / "model.weights.h5"], placed)
    bound = written.weights.values()
    used = {weight.name for each in bound for weight in each.weights}
    lines = written.text.splitlines()
    return Report(
        *told,
        verdict,
        compared,
        len(lines),
        len(used.intersection(data.variables)),
        sorted(name for name in {*data.variables} - used if not _of_optimizer(name, used)),
        [f"{i}: {lines[i - 1].strip()}" for i in sorted(of_tensorflow(written.text))],
        list(written.notes),
    )


def _of_optimizer(name: str, used: set[str]) -> bool:
    """Whether a variable is a slot, perhaps in a scope of the optimizer's, or one of its counts."""
    return name.endswith(("_power", GLOBAL_STEP)) or any(
        f"/{variable}/" in f"/{name}" for variable in used
    )
