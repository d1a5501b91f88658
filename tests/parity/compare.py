"""Parity comparisons: every difference between two runs, in words.

Each function returns the list of all differences, so that a failing test shows them together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

LOSS_RTOL = 1e-5
RESULT_RTOL = 1e-5
VARIABLE_RTOL = 1e-4


def assert_none(differences: list[str]) -> None:
    """Fails with the differences, one a line."""
    if differences:
        pytest.fail("\n".join(differences), pytrace=False)


def losses(actual: list[float], expected: list[float], rtol: float = LOSS_RTOL) -> list[str]:
    """Step by step, relative to the expected loss."""
    if len(actual) != len(expected):
        return [f"{len(actual)} losses instead of {len(expected)}"]
    return [
        f"step {i}: loss {a!r} instead of {e!r} (relative {abs(a - e) / abs(e):.1e})"
        for i, (a, e) in enumerate(zip(actual, expected, strict=True))
        if not abs(a - e) <= rtol * abs(e)
    ]


def arrays(
    actual: dict[str, np.ndarray], expected: dict[str, np.ndarray], rtol: float
) -> list[str]:
    """Names, shapes, dtypes and values.

    Integers are to be equal. Of floats the largest difference may be `rtol` times the largest
    magnitude expected in that array: slots are small numbers, which an absolute tolerance would
    wave through, with elements near zero, which an elementwise one would not let pass.
    """
    found = _names(actual, expected)
    for name in sorted(actual.keys() & expected.keys()):
        a, e = actual[name], expected[name]
        if a.shape != e.shape or a.dtype != e.dtype:
            found.append(f"{name}: {a.dtype}{a.shape} instead of {e.dtype}{e.shape}")
        elif not np.issubdtype(e.dtype, np.floating):
            found += [] if np.array_equal(a, e) else [f"{name}: {a} instead of {e}"]
        elif e.size:
            difference = float(np.max(np.abs(a - e)))
            scale = float(np.max(np.abs(e)))
            if not difference <= rtol * scale:
                found.append(f"{name}: differs by {difference:.2e}, its scale is {scale:.2e}")
    return found


def results(
    actual: dict[str, dict[str, Any]],
    expected: dict[str, dict[str, Any]],
    rtol: float = RESULT_RTOL,
) -> list[str]:
    """Results of evaluate as the driver describes them: keys, types, values."""
    found = _names(actual, expected)
    for key in sorted(actual.keys() & expected.keys()):
        a, e = actual[key], expected[key]
        if a["type"] != e["type"]:
            found.append(f"{key}: a {a['type']} instead of a {e['type']}")
        if not abs(a["value"] - e["value"]) <= rtol * abs(e["value"]):
            found.append(f"{key}: {a['value']!r} instead of {e['value']!r}")
    return found


def _names(actual: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    missing = [f"{name}: missing" for name in sorted(expected.keys() - actual.keys())]
    return missing + [f"{name}: not expected" for name in sorted(actual.keys() - expected.keys())]
