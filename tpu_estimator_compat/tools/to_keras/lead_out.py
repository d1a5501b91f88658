"""Leads a model out: converts it, checks what was written, and puts the files in their place."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from tpu_estimator_compat.config.arguments import check_input_fn, check_number
from tpu_estimator_compat.engine.files import removal
from tpu_estimator_compat.engine.modes.rules import InputFn
from tpu_estimator_compat.tools import child_process
from tpu_estimator_compat.tools.to_keras import convert, samples, script
from tpu_estimator_compat.tools.to_keras.check import DoesNotRunError, check
from tpu_estimator_compat.tools.to_keras.report import Report, Verdict
from tpu_estimator_compat.tools.to_keras.samples import Samples
from tpu_estimator_compat.tools.to_keras.saved_model import of_saved_model

__all__ = ["Report", "estimator", "saved_model", "targets"]

Told = Callable[[str, float], None]


def targets(out: str, *, replace: bool) -> tuple[pathlib.Path, pathlib.Path]:
    """The files to write; raises ValueError or OSError where that must not or cannot be."""
    path = pathlib.Path(out)
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise ValueError(f"The file of the model must be a Python module, NAME.py. Got {out!r}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r} for {out!r}.")
    found = path, path.with_suffix(".weights.h5")
    there = [str(each) for each in found if os.path.lexists(each)]
    if there and not replace:
        raise FileExistsError(
            f"{' and '.join(there)} already there. Name another file, or replace what is there by "
            "--replace (in Python, replace=True)."
        )
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"The folder {str(path.parent)!r} is write-protected.")
    return found


def saved_model(
    source: str,
    out: str,
    signature: str | None = None,
    tags: Sequence[str] = ("serve",),
    tolerance: float = 1e-5,
    *,
    replace: bool = False,
    progress: Told = lambda what, seconds: None,
) -> Report:
    """Leads a SavedModel out; raises ValueError or OSError for arguments that cannot work."""
    placed = targets(out, replace=replace)
    progress("Reading the SavedModel", 0)
    program = of_saved_model(source, signature, tags)
    data = samples.of_signature(source, signature, tags, program)
    return _lead_out(source, lambda: convert.convert(program), data, placed, tolerance, progress)


def estimator(
    estimator: Any,
    input_fn: InputFn,
    out: str,
    tolerance: float = 1e-5,
    *,
    replace: bool = False,
    progress: Told | None = None,
) -> Report:
    """Leads an estimator out; arguments as in `Estimator.to_keras`."""
    check_input_fn(input_fn)
    check_number(tolerance, "tolerance", least=0)
    placed, told = targets(out, replace=replace), progress or (lambda *_: None)
    told("Capturing model_fn", 0)
    modes = script.of_estimator(estimator, input_fn)
    data = samples.of_modes(modes)
    name = type(estimator).__name__
    return _lead_out(name, lambda: convert.of_modes(modes), data, placed, tolerance, told)


def _lead_out(
    source: str,
    make: Callable[[], convert.Converted],
    data: Samples,
    placed: tuple[pathlib.Path, pathlib.Path],
    tolerance: float,
    progress: Told,
) -> Report:
    told = source, str(placed[0])
    progress("Writing the Keras model", 0)
    try:
        converted = make()
    except convert.RefusedError as error:
        return Report(*told, Verdict.REFUSED, log=str(error))
    with child_process.temporary_folder("to_keras_") as folder:
        try:
            compared = check(
                converted, data, tolerance, folder, lambda s: progress("Running both models", s)
            )
        except DoesNotRunError as error:
            return Report(*told, Verdict.FAILS, log=str(error))
        verdict = Verdict.EQUAL if all(c.agrees for c in compared) else Verdict.DIFFERS
        if verdict is Verdict.EQUAL:
            _place([folder / "model.py", folder / "model.weights.h5"], placed)
    bound = converted.written.weights.values()
    used = {weight.name for each in bound for weight in each.weights}
    lines = converted.written.text.splitlines()
    return Report(
        *told,
        verdict,
        compared,
        len(lines),
        len(used.intersection(data.variables)),
        sorted(set(data.variables) - used),
        [f"{i}: {line.strip()}" for i, line in enumerate(lines, 1) if "tf." in line],
        converted.training.notes if converted.training else [],
    )


def _place(made: Sequence[pathlib.Path], placed: Sequence[pathlib.Path]) -> None:
    """Puts files into their places, all or none, each complete: the weights first."""
    new = [path.with_name(f".{path.name}.new-{os.urandom(4).hex()}") for path in placed]
    try:
        for source, path in zip(made, new, strict=True):
            with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "wb") as file:
                file.write(source.read_bytes())
                file.flush()
                os.fsync(file.fileno())
        for path, target in reversed(list(zip(new, placed, strict=True))):
            os.replace(path, target)
    finally:
        for path in new:
            removal.remove(path, "unfinished")
