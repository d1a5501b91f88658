"""Findings: faults, possible or certain, in the user's code, and advice on them."""

from __future__ import annotations

import csv
import dataclasses
import enum
import fnmatch
import functools
import importlib.resources
from collections.abc import Sequence
from typing import NamedTuple

from tpu_estimator_compat.engine.graph.source_line import SourceLine


class Severity(enum.Enum):
    """The certainty of a fault."""

    FAILS = "fails"
    """The step certainly cannot run on a TPU as it is."""
    MIGHT = "might"
    """The step may fail, or cost more than it seems; only a TPU can tell."""


class Kind(enum.Enum):
    CONFIGURATION = "configuration"
    INPUT = "input"
    MODEL_FN = "model_fn"
    UNSUPPORTED_OP = "unsupported op"
    HOST_OP = "host-only op"
    STRING = "string"
    DYNAMIC_SHAPE = "dynamic shape"
    NOT_CONSTANT = "not a constant"
    COMPILER = "compiler"
    MEMORY = "memory"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One fault, certain or possible. Fields that are unknown, or do not apply, are empty.

    Attributes:
      message: the fault, in one sentence.
      advice: the code to write instead.
      op: type of the operation, such as "StringToNumber".
      node: name of the operation in the user's graph.
      source: the user's line.
    """

    severity: Severity
    kind: Kind
    message: str
    advice: str = ""
    op: str = ""
    node: str = ""
    source: SourceLine | None = None


def refused(findings: Sequence[Finding], otherwise: str = "") -> NotImplementedError:
    """The error that lists findings of a step; `otherwise` is its text where there are none."""
    lines = "\n".join(map(_described, findings)) or otherwise
    return NotImplementedError(
        f'This step cannot run with runtime="jax", which compiles it with XLA:\n{lines}'
    )


def _described(finding: Finding) -> str:
    where = f" ({finding.source})" if finding.source else ""
    advice = f" Instead, {finding.advice}." if finding.advice else ""
    node = " ".join(filter(None, [finding.op, finding.node and repr(finding.node)]))
    return f"- {node}{where}: {finding.message}{advice}"


class Advice(NamedTuple):
    """A row of `advice.csv`: the kind of an op's fault on a TPU, and the code to write instead."""

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
