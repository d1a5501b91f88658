"""Advice for errors about names that NumPy dropped: what to write, or `--numpy-legacy`."""

from __future__ import annotations

import linecache
import re
import types

from tpu_estimator_compat.old_names.legacy.python_numpy import numpy_names
from tpu_estimator_compat.old_names.legacy.python_numpy.numpy_methods import METHODS

_VALUES = {
    "Calling np.sum(generator) is deprecated": "sum(generator)",
    "The binary mode of fromstring is removed": "np.frombuffer(data, dtype)",
    "The requested array has an inhomogeneous shape": "np.array(rows, dtype=object)",
    "Unable to avoid copy while creating an array": "np.asarray(x)",
    'arrays to stack must be passed as a "sequence"': "np.vstack([*arrays])",
    "only 0-dimensional arrays can be converted to Python scalars": "x.item()",
}
"""Maps fragments of NumPy's messages to code to write, for what `--numpy-legacy` restores."""

_GONE = {
    r"^%\w format: a real number is required, not numpy\.ndarray": "x.item()",
    r"^Python integer -?\d+ out of bounds for u?int\d+": "np.array(x).astype(dtype)",
    r"^The truth value of an empty array is ambiguous": "x.size > 0",
}
"""Maps patterns of NumPy's messages to code to write, for features that nothing restores."""


def advice(
    error: BaseException, frame: types.FrameType, number: int, *, legacy: bool, flag: bool
) -> str | None:
    """Advice on a NumPy error in line `number` of a frame; None for any other error.

    `legacy`: whether the frame's module may get names that NumPy dropped; `flag`: whether it does.
    """
    file = frame.f_code.co_filename
    line = linecache.getline(file, number, frame.f_globals)
    dropped = _dropped(error, frame, line)
    today = dropped or next((to for p, to in _GONE.items() if re.search(p, str(error))), None)
    if dropped is not None and legacy and not flag:
        return "This line uses a feature that NumPy dropped; --numpy-legacy restores it."
    if not today:
        return None
    return f"NumPy dropped what line {number} of {file} uses. Write `{today}` in it: {line.strip()}"


def _dropped(error: BaseException, frame: types.FrameType, line: str) -> str | None:
    """The replacement for a feature that `--numpy-legacy` restores; "" if NumPy's error has it."""
    text = str(error)
    if found := re.search(r"^'numpy\.\w+' object has no attribute '(\w+)'", text):
        return METHODS[found[1]][1] if found[1] in METHODS else None
    said = r"^module 'numpy' has no attribute '(\w+)'|^`np\.(\w+)` was removed in the NumPy"
    if found := re.search(said, text):
        name = found[1] or found[2]
        return "" if numpy_names.gives(name) else None
    if found := re.search(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'", text):
        known = numpy_names.ARGUMENTS.get(found[1], {})
        if found[2] not in known or not _calls_numpy(found[1], frame, line):
            return None
        return f"{known[found[2]]}=" if known[found[2]] else f"nothing for {found[2]}"
    return next((today for said, today in _VALUES.items() if said in text), None)


def _calls_numpy(name: str, frame: types.FrameType, line: str) -> bool:
    for found in re.finditer(rf"(?:\b(\w+)\.)?\b{name}\s*\(", line):
        thing = frame.f_globals.get(found[1] or name)
        where = thing.__name__ if isinstance(thing, types.ModuleType) else thing.__module__
        if where.partition(".")[0] == "numpy":
            return True
    return False
