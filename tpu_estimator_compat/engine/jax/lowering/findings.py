"""A finding of a preflight about one place in the user's code."""

from __future__ import annotations

import dataclasses
import enum

from tpu_estimator_compat.engine.graph.source_line import SourceLine


class Severity(enum.Enum):
    """The certainty of a finding."""

    FAILS = "fails"
    """The step certainly cannot run on a TPU as it is."""
    MIGHT = "might"
    """It may fail, or cost more than it seems; not known without a TPU."""


class Kind(enum.Enum):
    """The kind of a finding."""

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
    """One thing that is, or may be, wrong.

    Attributes:
      severity: the certainty of the finding.
      kind: the kind of the finding.
      message: the fault, in one sentence.
      advice: the code to write instead; empty where none is known.
      op: type of the operation, such as "StringToNumber"; empty where there is none.
      node: name of the operation in the user's graph; empty where there is none.
      source: the user's line; None where it is not known.
    """

    severity: Severity
    kind: Kind
    message: str
    advice: str = ""
    op: str = ""
    node: str = ""
    source: SourceLine | None = None
