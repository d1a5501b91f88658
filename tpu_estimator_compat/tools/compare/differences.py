"""Compares a value of two runs, and tells rounding from a difference.

The yardstick is a list of runs of the old side that differ by rounding alone. A value may differ by
a multiple of its largest difference in the yardstick.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tpu_estimator_compat.tools.compare.report import (
    Agreement,
    Array,
    ArrayComparison,
    Curve,
    CurveComparison,
    NamesComparison,
    Tolerance,
)

Arrays = Mapping[str, np.ndarray]

_ROUNDINGS = 8.0  # units in the last place that are always rounding


def curves(
    old: Mapping[str, Curve],
    new: Mapping[str, Curve],
    yardstick: Sequence[Mapping[str, Curve]],
    allowed: Tolerance,
) -> dict[str, CurveComparison]:
    """Compares scalars of the same names."""
    return {
        tag: curve(
            tag, old.get(tag), new.get(tag), [y[tag] for y in yardstick if tag in y], allowed
        )
        for tag in sorted({*old, *new})
    }


def curve(
    name: str, old: Curve | None, new: Curve | None, yardstick: Sequence[Curve], allowed: Tolerance
) -> CurveComparison:
    """Compares a scalar step by step; at most one of `old` and `new` is None."""
    if old is None or new is None:
        only = Agreement.ONLY_NEW if old is None else Agreement.ONLY_OLD
        return CurveComparison(name, only, old, new)
    steps, found = _relative(old, new)
    known = [dict(zip(*_relative(old, other), strict=True)) for other in yardstick]
    shown = [max((k.get(step, 0.0) for k in known), default=0.0) for step in steps]
    # Rounding accumulates over the steps, though the difference may be zero at some of them.
    widest = list(itertools.accumulate(shown, max))
    floor = _floor(allowed, np.dtype(np.float32))
    tolerance = [max(floor, allowed.factor * w) for w in widest]
    beyond = [s for s, d, t in zip(steps, found, tolerance, strict=True) if not d <= t]
    missing = set(old.steps) ^ set(new.steps)
    if beyond or missing:
        agreement = Agreement.DIFFERENT
    else:
        agreement = Agreement.ROUNDING if any(found) else Agreement.EQUAL
    first = min([*beyond, *missing], default=None)
    return CurveComparison(
        name, agreement, old, new, tuple(steps), tuple(found), tuple(tolerance), first
    )


def _floor(allowed: Tolerance, dtype: np.dtype) -> float:
    """Relative difference of values of `dtype` that is always rounding."""
    # NumPy has no epsilon of bfloat16 and similar types: their kind is V.
    if dtype.kind == "f":
        epsilon = float(np.finfo(dtype).eps)
    else:
        epsilon = 2.0**-7 if dtype.kind == "V" else 0.0
    return max(allowed.floor, _ROUNDINGS * epsilon)


def _relative(old: Curve, new: Curve) -> tuple[list[int], list[float]]:
    olds = dict(zip(old.steps, old.values, strict=True))
    news = dict(zip(new.steps, new.values, strict=True))
    steps = sorted(olds.keys() & news.keys())
    return steps, [_scaled(abs(news[s] - olds[s]), olds[s], news[s]) for s in steps]


def _scaled(difference: float, old: float, new: float) -> float:
    if old == new or (math.isnan(old) and math.isnan(new)):
        return 0.0
    if not math.isfinite(difference):
        return math.inf
    return difference / abs(old) if old else difference


def arrays(
    old: Arrays, new: Arrays, yardstick: Sequence[Arrays], allowed: Tolerance
) -> tuple[ArrayComparison, ...]:
    """Compares arrays of the same names, the worst first."""
    found = [
        array(
            name, old.get(name), new.get(name), [y[name] for y in yardstick if name in y], allowed
        )
        for name in sorted({*old, *new})
    ]
    return tuple(sorted(found, key=_badness, reverse=True))


def _badness(compared: ArrayComparison) -> tuple[bool, float]:
    if compared.largest is None:
        return True, math.inf
    return not compared.agreement.agrees, compared.largest


def array(
    name: str,
    old: np.ndarray | None,
    new: np.ndarray | None,
    yardstick: Sequence[np.ndarray],
    allowed: Tolerance,
) -> ArrayComparison:
    """Compares two arrays by their largest and root mean square difference, relative to the old.

    Optimizer slots are small, so an absolute tolerance would accept any difference. Some of their
    elements are near zero, so an elementwise relative tolerance would accept none.
    """
    shown = (_facts(old), _facts(new))
    if old is None or new is None:
        only = Agreement.ONLY_NEW if old is None else Agreement.ONLY_OLD
        return ArrayComparison(name, only, *shown)
    if old.shape != new.shape or old.dtype != new.dtype:
        note = f"{new.dtype}{list(new.shape)} instead of {old.dtype}{list(old.shape)}"
        return ArrayComparison(name, Agreement.DIFFERENT, *shown, note=note)
    if old.dtype.kind not in _NUMERIC:
        same = np.array_equal(old, new)
        return ArrayComparison(name, Agreement.EQUAL if same else Agreement.DIFFERENT, *shown)
    largest, typical = distance(old, new)
    alike = [distance(old, y) for y in yardstick if y.shape == old.shape and y.dtype == old.dtype]
    floor = _floor(allowed, old.dtype)
    tolerance, typical_tolerance = (
        max([floor, *(allowed.factor * pair[i] for pair in alike)]) for i in (0, 1)
    )
    if largest == 0:
        agreement = Agreement.EQUAL
    else:
        within = largest <= tolerance and typical <= typical_tolerance
        agreement = Agreement.ROUNDING if within else Agreement.DIFFERENT
    return ArrayComparison(name, agreement, *shown, largest, typical, tolerance, typical_tolerance)


def distance(old: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """`max|new - old| / max|old|`, and the same ratio of root mean squares.

    The difference of elements that are not finite is 0 if both are the same, else infinite.
    """
    if not old.size:
        return 0.0, 0.0
    a, b = (x.astype(np.float64) for x in (old, new))
    with np.errstate(invalid="ignore"):
        difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(b - a))
    if not np.isfinite(difference).all():
        return math.inf, math.inf
    a = a[np.isfinite(a)]
    largest, scale = float(difference.max()), float(np.abs(a).max(initial=0.0))
    rms = float(np.sqrt(np.mean(difference**2)))
    rms_scale = float(np.sqrt(np.mean(a**2))) if a.size else 0.0
    return largest / (scale or 1.0), rms / (rms_scale or 1.0)


def names(
    old: Mapping[str, Sequence[str]], new: Mapping[str, Sequence[str]]
) -> tuple[NamesComparison, ...]:
    """Compares names by kind."""
    found = []
    for what in sorted({*old, *new}):
        olds, news = set(old.get(what, ())), set(new.get(what, ()))
        parts = (tuple(sorted(part)) for part in (olds & news, olds - news, news - olds))
        found.append(NamesComparison(what, *parts))
    return tuple(found)


def _facts(value: np.ndarray | None) -> Array | None:
    if value is None:
        return None
    numeric = value.dtype.kind in _NUMERIC
    magnitude = float(np.abs(value.astype(np.float64)).max(initial=0.0)) if numeric else 0.0
    scalar = float(value) if numeric and value.shape == () else None
    return Array(tuple(value.shape), str(value.dtype), magnitude, scalar)


_NUMERIC = "fiubV"
