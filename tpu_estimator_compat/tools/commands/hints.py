"""Hints after a script's traceback: remedies for errors that today's libraries cause."""

from __future__ import annotations

import builtins
import linecache
import re
import sys
import traceback
import types
from collections.abc import Iterator

_LIBRARIES = {"keras", "tensorflow", "tensorflow_estimator", "tf_keras", "tpu_estimator_compat"}


def of(error: BaseException, *, numpy_legacy: bool) -> Iterator[str]:
    """The hints for an error of a script, which ran with or without NumPy's old names."""
    yield from _of_warning(error)
    package = _modern_package(error)
    missing = _missing(error) if isinstance(error, ImportError) else None
    if package is not None:
        yield _of_package(package, missing)
    elif missing is not None and missing[0].partition(".")[0] == "keras" and _is_served(*missing):
        yield (
            "In the script's own modules keras is Keras 3, which lacks this. Keras 2 is tf_keras, "
            "its private modules are in tf_keras.src: import those instead."
        )
    yield from _of_line(error, numpy_legacy)


def _of_warning(error: BaseException | None) -> Iterator[str]:
    """The hint on a warning, turned into an error, that stopped AutoGraph.

    AutoGraph then leaves the function unconverted, and its `if x:` raises.
    """
    if type(error).__name__ != "OperatorNotAllowedInGraphError":
        return
    while error is not None and not isinstance(error, Warning):
        error = error.__cause__ or error.__context__
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)] if error else []
    modules = [str(frame.f_globals.get("__name__")) for frame in frames]
    if any(name.startswith("tensorflow.python.autograph.pyct.") for name in modules):
        option = f"-W ignore::{type(error).__name__}:{modules[-1]}"
        yield (
            "AutoGraph did not convert a function, because a warning was turned into an error, as "
            f"by `-W error` or PYTHONWARNINGS. Add `{option}` as the last -W option."
        )


def _of_line(error: BaseException, numpy_legacy: bool) -> Iterator[str]:
    """The hints on the line at fault, the traceback's last that is not NumPy's."""
    from tpu_estimator_compat.old_names.legacy.python_numpy import numpy_errors, python2_errors

    frames = [
        (frame, number)
        for frame, number in traceback.walk_tb(error.__traceback__)
        if _top(frame) != "numpy"
    ]
    if not frames or _top(frames[-1][0]) in _LIBRARIES:
        return
    frame, number = frames[-1]
    legacy = _is_legacy(frame)
    line = linecache.getline(frame.f_code.co_filename, number, frame.f_globals)
    of_numpy = numpy_errors.advice(error, frame, number, legacy=legacy, flag=numpy_legacy)
    of_python = python2_errors.advice(error, line) if legacy else None
    yield from filter(None, (of_numpy, of_python))


def _top(frame: types.FrameType) -> str:
    """The package of a frame's module."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_legacy(frame: types.FrameType) -> bool:
    """Whether a frame is of legacy code, which has an `__import__` of its own."""
    return frame.f_builtins.get("__import__") is not builtins.__import__


def _of_package(package: str, missing: tuple[str, str] | None) -> str:
    named = f"--legacy-package {package}"
    if missing is None or _is_served(*missing):
        advice = (
            f"If it is as old as the script, {named} gives it the names that TensorFlow "
            "dropped, and Keras 2 as keras."
        )
    else:
        name = ".".join(filter(None, missing))
        advice = f"{named} would not help: there is no {name} for legacy code either."
    return (
        f"This error is from {package}, which was imported with today's TensorFlow: it is not a "
        f"module of the script, and not given by --legacy-package. {advice}"
    )


def _modern_package(error: BaseException) -> str | None:
    """The package, not run as legacy code, whose error today's TensorFlow may have caused.

    None if the error came from legacy code, or is not about TensorFlow.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        top = _top(frame)
        if top in _LIBRARIES or (top in sys.stdlib_module_names and top != "__main__"):
            continue
        if _is_legacy(frame):
            return None
        if isinstance(error, ImportError):
            is_of_tensorflow = (error.name or "").partition(".")[0] in _LIBRARIES
        else:
            is_of_tensorflow = any(map(_is_tensorflow, list(frame.f_globals.values())))
        return top if is_of_tensorflow else None
    return None


def _missing(error: ImportError) -> tuple[str, str] | None:
    """The module of a failed import, and the name that it lacks; None for other libraries."""
    module = error.name or ""
    if module.partition(".")[0] not in _LIBRARIES:
        return None
    found = re.match(r"cannot import name '(\w+)'", str(error))
    return module, found.group(1) if found else ""


def _is_served(module: str, name: str) -> bool:
    """Whether the failed import would succeed in legacy code."""
    from tpu_estimator_compat.old_names.legacy import imports
    from tpu_estimator_compat.old_names.legacy.dialect import Dialect

    try:
        imports.imported(module, (name,) if name else None, Dialect.V1)
    except ImportError:
        return False
    return True


def _is_tensorflow(value: object) -> bool:
    if not isinstance(value, types.ModuleType):
        return False
    return getattr(value, "__name__", "").partition(".")[0] in _LIBRARIES
