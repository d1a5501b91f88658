"""Advice on ops that do not run on a TPU: the table `advice.csv`."""

from __future__ import annotations

import csv
import fnmatch
import functools
import importlib.resources
from typing import NamedTuple

from tpu_estimator_compat.engine.jax.lowering.findings import Kind


class Advice(NamedTuple):
    """A row of the table: the kind of an op's fault, and the code to write instead."""

    kind: Kind
    text: str


@functools.cache
def _table() -> list[tuple[str, Advice]]:
    file = importlib.resources.files(__package__) / "advice.csv"
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    return [(row["op"], Advice(Kind(row["kind"]), row["advice"])) for row in rows]


@functools.cache
def advice(op: str) -> Advice | None:
    """The advice of the first row whose pattern matches an op's type; None without a row."""
    return next((found for pattern, found in _table() if fnmatch.fnmatchcase(op, pattern)), None)
