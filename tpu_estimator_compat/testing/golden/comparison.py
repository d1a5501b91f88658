"""Comparison of a test's values with those of its golden file: what the fixture `golden` gives."""

from __future__ import annotations

import os
import pathlib
import shlex
from collections.abc import Sequence
from typing import Any

from tpu_estimator_compat.testing.golden import files, values
from tpu_estimator_compat.testing.golden.values import Difference

_MOST_ROWS = 30
_WIDEST = 60  # characters of a column


class Golden:
    """Compares values with those in a test's golden file, or writes them there.

    Attributes:
      changes: for each name that was written, the differences from the file before.
      passed: whether the test has come to its end without a failure.

    Example:

        def test_losses_of_three_steps(golden):
            estimator.train(input_fn, steps=3)
            golden(estimator.evaluate(input_fn, steps=1))
            golden(estimator.get_variable_value("dense/kernel"), name="kernel", rtol=1e-4)
    """

    def __init__(self, path: pathlib.Path, nodeid: str, updates: bool):
        self.path = path
        self.changes: dict[str, list[Difference]] = {}
        self.passed = False
        self._nodeid = nodeid
        self._updates = updates
        self._used: set[str] = set()

    def __call__(
        self, value: Any, name: str | None = None, rtol: float = 1e-5, atol: float = 1e-8
    ) -> None:
        """Fails if a value is not the one in the file, within tolerances.

        Args:
          value: numbers, strings, bytes, bools, None and arrays, in dicts, lists and tuples; or an
            object that has `as_dict()`. Of an array with more than 200 elements, a summary is
            compared.
          name: a name of the value, for a test that has several.
          rtol: the largest relative difference of floats. NaN equals NaN. Anything else, dtypes
            and shapes among it, must be equal.
          atol: a difference of floats below it is none.

        Raises:
          AssertionError: it differs, or the file does not have it.
          DamagedFileError: the file has a line in another format.
          TypeError: a part of the value is of another type.
          ValueError: the test has used the name already, or the name has a line break or `=`.
        """
        __tracebackhide__ = True
        self._take_name(name)
        now = values.leaves(value)
        sections = files.read(self.path)
        stored = sections.get(name or "")
        found = values.differences(stored or {}, now, rtol, atol)
        if not found and stored:
            return
        if self._updates:
            sections[name or ""] = now
            files.write(self.path, self._nodeid.partition("::")[2], sections)
            self.changes[name or ""] = found if stored else []
        else:
            raise AssertionError(self._failure(name, found, is_stored=bool(stored)))

    def check_names(self) -> None:
        """Fails if the file has values that the test did not give, so that none was compared."""
        __tracebackhide__ = True
        if unused := self.unused_names():
            raise AssertionError(
                f"{os.path.relpath(self.path)} has values that the test did not give: "
                f"{', '.join(name or 'the one without a name' for name in unused)}. If they are no "
                "longer wanted, remove their lines."
            )

    def unused_names(self) -> list[str]:
        return sorted(set(files.read(self.path)) - self._used)

    def _take_name(self, name: str | None) -> None:
        if name is not None and (not name or any(sign in name for sign in "\r\n=")):
            raise ValueError(f"the name {name!r} must have a character, and no line break or `=`")
        if (name or "") in self._used:
            raise ValueError(
                f"the test gives {name!r} twice: give `golden` another name for each value"
                if name
                else "the test gives two values without a name: call golden(value, name=...)"
            )
        self._used.add(name or "")

    def _failure(self, name: str | None, found: Sequence[Difference], is_stored: bool) -> str:
        file = os.path.relpath(self.path)
        what = f"{file} [{name}]" if name else file
        command = f"pytest {shlex.quote(self._nodeid)} --update-golden"
        if not is_stored:
            return f"{what} is not there. To write it from the current values:\n  {command}"
        head = f"{len(found)} values are not those of {what}"
        if len(found) == 1:
            head = f"a value is not that of {what}"
        return f"{head}:\n{table(found)}\nIf the new values are right, write them:\n  {command}"


def table(differences: Sequence[Difference]) -> str:
    """The differences in columns: path, stored, now, relative difference."""
    rows = [("path", "stored", "now", "relative difference")]
    rows += [(d.path, d.stored, d.now, d.relative) for d in differences[:_MOST_ROWS]]
    cells = [[_cut(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    if left := len(differences) - _MOST_ROWS:
        lines += [f"and {left} more"] if left > 0 else []
    return "\n".join(f"  {line}" for line in lines)


def _cut(cell: str) -> str:
    return cell if len(cell) <= _WIDEST else f"{cell[: _WIDEST - 3]}..."
