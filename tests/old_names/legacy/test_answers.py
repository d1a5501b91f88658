"""The answer of `names` to every public name of TensorFlow 1.15 and 2.15 is what a script gets.

`public_names_*.txt` are what `tests/support/public_names.py` prints with those releases.
"""

import pathlib

import pytest

from tpu_estimator_compat.old_names.legacy import imports, overlay, table
from tpu_estimator_compat.old_names.legacy.dialect import Dialect
from tpu_estimator_compat.old_names.legacy.table import Status
from tpu_estimator_compat.tools.commands.names import rows_of

WITHOUT_ROW = {"1.15": 40, "1.15 contrib": 0, "2.15_v1": 0, "2.15_v2": 0}
"""How many names TensorFlow dropped before 2.15, for which there is no row."""


def names(release):
    if release.endswith("contrib"):
        yield from pathlib.Path(__file__).with_name("contrib_names.txt").read_text().split()
        return
    file = pathlib.Path(__file__).with_name(f"public_names_{release}.txt")
    for line in file.read_text().splitlines():
        namespace, _, inside = line.partition(":")
        yield from (f"{namespace}.{name}" for name in inside.split())


def is_given(name, dialect):
    """Whether a script of this dialect gets something that it can use."""
    path, _, last = name.replace("tf", "tensorflow", 1).rpartition(".")
    try:
        thing = getattr(imports.imported(path, (last,), dialect), last)
    except ImportError:
        return False
    return not isinstance(thing, overlay.Refused)


@pytest.mark.parametrize("release", WITHOUT_ROW)
def test_every_public_name(release):
    dialect = Dialect.V2 if release.endswith("v2") else Dialect.V1
    wrong, without = [], []
    for name in names(release):
        row = next(rows_of(table.load(), name), None)
        if row is None:
            without.append(name)
        works = row is not None and row.status is not Status.REFUSED
        if works != is_given(name, dialect):
            wrong.append(name)
    assert wrong == []
    assert len(without) == WITHOUT_ROW[release], without
