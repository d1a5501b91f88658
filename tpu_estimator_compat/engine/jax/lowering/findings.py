"""The findings of a preflight: faults, possible or certain, in the user's code."""

from __future__ import annotations

import dataclasses
import enum

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
