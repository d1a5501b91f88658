"""A finding: a dead name at its place in a file, and the remedy."""

from __future__ import annotations

import dataclasses
import enum


class Status(enum.Enum):
    """The status of a finding; those to change by hand come first."""

    REFUSED = "refused"
    UNKNOWN = "unknown"
    BY_HAND = "by hand"
    UNREADABLE = "unreadable"
    WORKS = "works"
    DIFFERS = "differs"
    PYTHON_2 = "python 2"

    @property
    def is_manual(self) -> bool:
        """Whether `run` and `migrate` leave the change to the user."""
        return self not in (Status.WORKS, Status.DIFFERS, Status.PYTHON_2)


@dataclasses.dataclass(frozen=True, order=True)
class ScanFinding:
    """A use of a dead name, or the reason why a file cannot be searched.

    Attributes:
      file: the path, as given or below a given folder.
      line: number from 1; 0 for the file, or the cell, as a whole.
      column: number of the character, from 1; 0 for the line as a whole.
      name: the name as the table of dead names spells it, such as `tf.contrib.tpu.TPUConfig`; as
        the file spells it, if it is in no table.
      cell: number of the notebook's cell, from 1, counting all cells; 0 in other files.
    """

    file: str
    line: int
    column: int
    name: str
    status: Status = dataclasses.field(compare=False)
    advice: str = ""
    cell: int = 0

    @property
    def place(self) -> str:
        """`file:line`, which editors understand; `file, cell 3, line 2` in a notebook."""
        if self.cell:
            line = f", line {self.line}" if self.line else ""
            return f"{self.file}, cell {self.cell}{line}"
        return f"{self.file}:{self.line}" if self.line else self.file


def unwritten(file: str, why: str) -> ScanFinding:
    return ScanFinding(file, 0, 0, "", Status.UNREADABLE, f"Not written: {why}")


def unreadable(file: str, error: Exception) -> ScanFinding:
    return ScanFinding(file, 0, 0, "", Status.UNREADABLE, f"Not read: {error}")
