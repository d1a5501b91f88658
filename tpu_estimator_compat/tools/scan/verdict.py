"""The verdict on a name that a module uses: whether it is dead, and its replacement."""

from __future__ import annotations

import dataclasses

from tpu_estimator_compat.old_names.canned import of_v2
from tpu_estimator_compat.old_names.legacy import table
from tpu_estimator_compat.old_names.legacy.dialect import Dialect, is_only_in, meaning
from tpu_estimator_compat.old_names.legacy.python_numpy import python2
from tpu_estimator_compat.old_names.legacy.references import PYTHON_2, Form, Reference
from tpu_estimator_compat.old_names.legacy.table import DeadName
from tpu_estimator_compat.tools.scan.findings import ScanFinding, Status

V1 = "tpu_estimator_compat.v1"
INTERNAL = {"python", "core", "compiler", "lite", "tools"}
"""Packages inside TensorFlow, which belong to neither API."""

_GONE = ("contrib", "estimator", "keras.estimator")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The verdict on a dead name.

    Attributes:
      name: the name as the table spells it.
      row: the table's row for the name or for a module above it; None if there is none.
      of_2: whether TensorFlow 2's object is meant, where TensorFlow 1 has another by that name.
    """

    name: str
    status: Status
    advice: str = ""
    row: DeadName | None = None
    of_2: bool = False

    @property
    def target(self) -> str | None:
        """The full path of the name: in `tpu_estimator_compat.v1`, if possible."""
        if self.status not in (Status.WORKS, Status.DIFFERS, Status.REFUSED):
            return None
        path, row = self.name, self.row
        if row is not None and row.move_to:
            path = row.move_to + path.removeprefix(row.name)
        if path.partition(".")[0] == "tf":
            return V1 + (".compat.v2" if self.of_2 else "") + path.removeprefix("tf")
        if row is None or not row.served_by:
            return None
        return row.served_by.replace(":", ".") + path.removeprefix(row.name)

    def at(self, file: str, line: int, column: int, cell: int = 0) -> ScanFinding:
        advice, target = self.advice, self.target
        moved = self.row is not None and (self.row.move_to or not self.name.startswith("tf."))
        if self.status is Status.WORKS and target is not None and moved:
            advice = f"Write {target}."
        return ScanFinding(file, line, column, self.name, self.status, advice, cell)


def verdict(reference: Reference, bare: Dialect = Dialect.V2) -> Verdict | None:
    """The verdict on a reference in a module with an API; None if the name is alive."""
    bare = reference.bare or bare
    said = _of_path(reference, bare)
    if said is None or not said.status.is_manual:
        by_hand = _by_hand(reference, bare, said is not None)
        if by_hand and said is not None:
            return dataclasses.replace(said, status=Status.BY_HAND, advice=by_hand)
        if by_hand:
            return Verdict(reference.path, Status.BY_HAND, by_hand)
    return said


def _by_hand(reference: Reference, bare: Dialect, dead: bool) -> str:
    """Advice on a name that no program can rewrite safely; else empty."""
    if reference.form is Form.STRING and dead:
        return f"A string names it. Write {V1} and what follows, where that is what is meant."
    if reference.form is Form.GETATTR and dead and bare is Dialect.V2:
        return f"Write getattr of `{V1}`, or the attribute itself."
    is_star = reference.form is Form.STAR
    if is_star and (dead or (reference.path == "tensorflow" and bare is Dialect.V1)):
        return f"What `import *` gives cannot be told. Import the names from {V1}."
    root, _, name = reference.path.partition(".")
    namespace = name.partition(".")[0]
    in_clone = root == "tensorflow" and not is_only_in(Dialect.V2, namespace)
    if bare is Dialect.V1 and in_clone and is_only_in(Dialect.V2, name):
        return (
            "Only TensorFlow 2 has this name, and the module means TensorFlow 1. "
            f"Write tf.compat.v2.{name}."
        )
    return ""


def _of_path(reference: Reference, bare: Dialect) -> Verdict | None:
    path = reference.path
    root = path.partition(".")[0]
    if root == PYTHON_2:
        return _of_python_2(path, reference.form)
    if root == "tensorflow_estimator":
        is_namespace = bool(table.load().below(path))
        return _of_row(path, path) or (
            Verdict(path, Status.WORKS) if is_namespace else _unknown(path)
        )
    if root == "tpu_estimator_compat":
        return _of_migrated(path)
    api, name = meaning(path, bare)
    if not name:
        return None
    dead = f"tf.{name}"
    if name.partition(".")[0] in INTERNAL:
        return _of_row(dead, dead)
    # What only TensorFlow 1 had is dead wherever it is written.
    if api is Dialect.V2 and not (_is_gone(name) or is_only_in(Dialect.V1, name)):
        return None
    said = _of_row(dead, dead)
    if said is not None and api is Dialect.V2 and _is_another_in_2(name):
        return dataclasses.replace(said, of_2=True)
    if said is None and _is_gone(name):
        return _unknown(dead)
    if said is None and api is Dialect.V1 and _imports_of_bare(reference):
        return None if is_only_in(Dialect.V2, name) else Verdict(dead, Status.WORKS)
    return said


def _of_python_2(path: str, form: Form) -> Verdict:
    name = path.rpartition(".")[2]
    if form is Form.METHOD:
        return Verdict(f"dict.{name}", Status.PYTHON_2, f"Write {python2.METHODS[name]}().")
    return Verdict(name, Status.WORKS, f"Python 2 had it. Write {python2.NAMES[name]}.")


def _imports_of_bare(reference: Reference) -> bool:
    """Whether a reference imports from `tensorflow` itself, to be rewritten for TensorFlow 1."""
    is_import = reference.form in (Form.FROM, Form.IMPORT)
    return is_import and not reference.path.startswith("tensorflow.compat.")


def _of_migrated(path: str) -> Verdict | None:
    """The verdict on `tpu_estimator_compat.v1.x`; None for names that are provided."""
    if not path.startswith(f"{V1}."):
        return None
    name = path.removeprefix(f"{V1}.")
    said = _of_row(f"tf.{name}", f"tf.{name}")
    if said is None and _is_gone(name):
        return _unknown(f"tf.{name}")
    return said if said is not None and said.status.is_manual else None


def _of_row(name: str, asked: str) -> Verdict | None:
    """The verdict by the row of a name, or of a module above it; a namespace of rows works."""
    rows = table.load()
    row = rows.covering(name)
    is_namespace = bool(rows.below(name))
    refused = row is not None and row.status is table.Status.REFUSED
    # In a refused namespace, some names may work: each use gets a verdict.
    says = row is not None and (row.name == name or _provides(row, name))
    if row is not None and says and not (refused and is_namespace):
        advice = "" if row.status is table.Status.WORKS else row.advice
        return Verdict(asked, Status(row.status.value), advice, row)
    if is_namespace and (row is not None or _is_gone(name.partition(".")[2])):
        return Verdict(asked, Status.WORKS)
    return None if row is None else _of_original(asked) or _unknown(asked)


def _of_original(name: str) -> Verdict | None:
    """The verdict on a name of one of the original's modules that only the original has."""
    path = table.main_path(name)
    module, row, following = path, table.load().covering(path), ""
    while module and f"{module}+" not in table.provided():
        module, _, following = module.rpartition(".")
    if following in table.provided().get(f"{module}+", ()):
        return Verdict(path, Status.WORKS, row=table.load().rows[table.ORIGINAL])
    in_parts = row is not None and row.advice and table.is_of_original(path)
    return Verdict(name, Status.REFUSED, row.advice) if row and in_parts else None


def _unknown(name: str) -> Verdict:
    return Verdict(
        name,
        Status.UNKNOWN,
        "As far as this package knows, it was never a public name of TensorFlow 1 or 2, and it has "
        "no replacement here. Use a public name that does the same, rewrite it, or ask for it in "
        "an issue.",
    )


def _is_gone(name: str) -> bool:
    """Whether a name is in a namespace of which nothing is left."""
    return any(f"{name}.".startswith(f"{gone}.") for gone in _GONE)


def _is_another_in_2(name: str) -> bool:
    namespace, _, following = name.partition(".")
    return namespace == "estimator" and following.partition(".")[0] in of_v2.NAMES


def _provides(row: DeadName, name: str) -> bool:
    """Whether a module's row holds for a name in it: the module has the name, or is refused."""
    if row.status is table.Status.REFUSED:
        return True
    following = name.removeprefix(f"{row.name}.").partition(".")[0]
    names = table.provided().get(table.main_path(row.name))
    return names is None or following in names
