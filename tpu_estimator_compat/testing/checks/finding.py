"""What checks find: comparisons of arrays, a finding, and the AssertionError that tells of all."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import sources
from tpu_estimator_compat.testing.results import Arrays
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


def equal(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether arrays are equal bit for bit; NaN equals NaN."""
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def differing(first: Arrays, second: Arrays) -> list[str]:
    """Names of the arrays that are not equal."""
    return [name for name, value in first.items() if not equal(value, second[name])]


def close(one: np.ndarray, other: np.ndarray, rtol: float, atol: float) -> bool:
    """Whether floats differ by rounding only; integers, bools and text must be equal."""
    if one.dtype.kind not in "fc":
        return np.array_equal(one, other)
    return np.allclose(one, other, rtol, atol, equal_nan=True)
