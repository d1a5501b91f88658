"""Comparisons of arrays: equal bit for bit, or up to rounding. NaN equals NaN."""

from __future__ import annotations

import numpy as np

from tpu_estimator_compat.testing.results import Arrays


def equal(one: np.ndarray, other: np.ndarray) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def differing(first: Arrays, second: Arrays) -> list[str]:
    """Names of the arrays that are not equal."""
    return [name for name, value in first.items() if not equal(value, second[name])]


def close(one: np.ndarray, other: np.ndarray, rtol: float, atol: float) -> bool:
    """Whether floats differ by rounding only; integers, bools and text must be equal."""
    if one.dtype.kind not in "fc":
        return np.array_equal(one, other)
    return np.allclose(one, other, rtol, atol, equal_nan=True)
