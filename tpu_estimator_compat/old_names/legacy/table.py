"""The table of dropped names: `names/*.csv`, one row per name that TensorFlow no longer has.

The columns are:

- `name`: the legacy path, with `tf` for the TF1 namespace (`tensorflow` of 1.x, and
  `tensorflow.compat.v1`), or `tensorflow_estimator` for that package. A row may stand for a whole
  module; rows below it list the exceptions. The row of a name holds for its other paths, too.
- `since`: the release of TensorFlow that dropped the name.
- `status`: `works`, `differs` (works, but see `advice`), or `refused`.
- `served_by`: the replacement, `module` or `module:attribute`, here or elsewhere; empty if refused.
- `move_to`: for the codemod, the new name below `tpu_estimator_compat.v1`, written with `tf`; empty
  if the name stays the same.
- `advice`: text for users: the difference, or, for a refused name, the reason and the alternative.
  With a module of `ORIGINAL`, the reason why functions and classes that have no row are refused.
"""

from __future__ import annotations

import csv
import dataclasses
import enum
import functools
import importlib.resources
from collections.abc import Iterable

_NAMES = importlib.resources.files(__package__) / "names"
ORIGINAL = "tensorflow_estimator.python.estimator"
"""Its modules have our names, and for others the original's own: of the row that serves it."""


class Status(enum.Enum):
    WORKS = "works"
    DIFFERS = "differs"
    REFUSED = "refused"


@dataclasses.dataclass(frozen=True)
class DeadName:
    """A row of the table; its fields are the columns."""

    name: str
    since: str
    status: Status
    served_by: str = ""
    move_to: str = ""
    advice: str = ""

    @property
    def today(self) -> str:
        """The name to write today; empty if refused."""
        if self.move_to or (self.served_by and self.name.startswith("tf.")):
            return self.move_to or self.name
        return self.served_by.replace(":", ".")


class Table:
    """Rows by name, with lookups of the rows above and below a name."""

    def __init__(self, rows: Iterable[DeadName]):
        self.rows: dict[str, DeadName] = {}
        self._namespaces: dict[str, set[str]] = {}
        for row in rows:
            if row.name in self.rows:
                raise ValueError(f"Two rows for {row.name!r}.")
            self.rows[row.name] = row
        for name in (*self.rows, *_other_paths()):
            parts = name.split(".")
            for end in range(1, len(parts)):
                self._namespaces.setdefault(".".join(parts[:end]), set()).add(parts[end])

    def get(self, name: str) -> DeadName | None:
        row = self.rows.get(main_path(name))
        if row is None or row.name == name:
            return row
        since = "2.0" if name.startswith("tf.contrib.") else row.since
        return dataclasses.replace(row, name=name, since=since)

    def covering(self, name: str) -> DeadName | None:
        """The row of a name, or of the nearest module above that has a row."""
        while name:
            if (row := self.get(name)) is not None:
                return row
            name = name.rpartition(".")[0]
        return None

    def below(self, namespace: str) -> frozenset[str]:
        """The name parts that follow `namespace` in the rows below it."""
        return frozenset(self._namespaces.get(main_path(namespace), ()))


def main_path(name: str) -> str:
    """The path of a name that the table has rows for.

    >>> main_path("tf.python.estimator.training"), main_path("tf.layers")
    ('tensorflow_estimator.python.estimator.training', 'tf.layers')
    """
    for other, path in _other_paths().items():
        if f"{name}.".startswith(f"{other}."):
            return path + name.removeprefix(other)
    return name


def is_of_original(name: str) -> bool:
    """Whether a name is in one of the modules of `ORIGINAL`, by any of its paths."""
    return f"{main_path(name)}.".startswith(f"{ORIGINAL}.")


def canonical(path: str) -> str:
    """The path in the table's spelling: `tf` for `tensorflow` and `tensorflow.compat.v1`.

    >>> canonical("tensorflow.compat.v1.estimator.tpu"), canonical("tensorflow_estimator.python")
    ('tf.estimator.tpu', 'tensorflow_estimator.python')
    """
    parts = path.split(".")
    if parts[0] == "tensorflow":
        parts[0] = "tf"
    while parts[:3] in (["tf", "compat", "v1"], ["tf", "compat", "v2"]):
        parts[1:3] = []
    return ".".join(parts)


def public(path: str) -> str:
    """The path with `tensorflow` for `tensorflow_core`, its internal package in 1.15 and 2.0.

    Editors inserted imports of that package.

    >>> public("tensorflow_core.python.keras"), public("tensorflow.keras")
    ('tensorflow.python.keras', 'tensorflow.keras')
    """
    top, dot, rest = path.partition(".")
    return f"tensorflow{dot}{rest}" if top == "tensorflow_core" else path


@functools.cache
def _other_paths() -> dict[str, str]:
    """Where other releases had what the table has rows for, and where the table has it."""
    lines = (_NAMES / "other_paths.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ") for line in lines)


@functools.cache
def load() -> Table:
    found = []
    for file in sorted(_NAMES.iterdir(), key=lambda f: f.name):
        if file.name.endswith(".csv"):
            rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
            found += [DeadName(status=Status(row.pop("status")), **row) for row in rows]
    return Table(found)


@functools.cache
def provided() -> dict[str, frozenset[str]]:
    """The names in the modules that serve rows, by row, as `tests/support/live_names.py` says."""
    lines = (_NAMES / "provided.txt").read_text(encoding="utf-8").splitlines()
    parts = (line.partition(":") for line in lines)
    return {name: frozenset(names.split()) for name, _, names in parts}
