"""A finding of a check, and the AssertionError that tells of all."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.graph import sources
from tpu_estimator_compat.tools.reports.sources import place, printable

_MOST_SHOWN = 10


@dataclasses.dataclass(frozen=True)
class Finding:
    """A fault of a model_fn.

    Attributes:
      said: the fault, with the name of the variable or key.
      instead: the advice on what to write; empty where `said` tells.
      operation: the operation whose line is named; None for no line.
    """

    said: str
    instead: str = ""
    operation: tf.Operation | None = None

    def __str__(self) -> str:
        lines = [self.said]
        source = self.operation and sources.of_operation(self.operation)
        if source:
            lines += [f"    {place(source)} in {printable(source.function)}"]
            lines += [f"        {printable(source.code)}"] if source.code else []
        if self.instead:
            told = f"instead: {self.instead}"
            lines += textwrap.wrap(told, 96, initial_indent="    ", subsequent_indent=" " * 13)
        return "\n".join(lines)


def raise_if_any(check: str, findings: Sequence[Finding]) -> None:
    __tracebackhide__ = True  # pytest shows the test's own line
    if not findings:
        return
    shown = [f"{i}. {finding}" for i, finding in enumerate(findings[:_MOST_SHOWN], 1)]
    if len(findings) > _MOST_SHOWN:
        shown.append(f"and {len(findings) - _MOST_SHOWN} more.")
    raise AssertionError("\n".join([f"{check} found {len(findings)} fault(s):", *shown]))
