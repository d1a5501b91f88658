"""Finds the largest batch of one replica that fits, by bisection."""

from __future__ import annotations

from collections.abc import Callable

from tpu_estimator_compat.tools.preflight.report import LargestBatch

_NEAR = 16
"""The search ends at an interval of 1/16 of its lower end: each try is a compilation."""
_MOST = 2**20


def search(fits: Callable[[int], bool | None], start: int) -> LargestBatch:
    """Doubles or halves the batch until the limit lies between two sizes, then bisects.

    Batches between the result's `fits` and `fails` are not tried. If `fits()` returns None, for
    unknown, the search ends.
    """
    tried: list[int] = []

    def attempt(batch: int) -> bool | None:
        tried.append(batch)
        return fits(batch)

    low, high, batch = 0, None, start
    while batch and (answer := attempt(batch)) is not None:
        if answer:
            low = batch
        else:
            high = batch
        batch = _next(low, high)
    return LargestBatch(low, high, tuple(tried))


def _next(low: int, high: int | None) -> int:
    """The next batch to try; 0 where the interval is small enough."""
    if high is None:
        return low * 2 if low * 2 <= _MOST else 0
    if not low:
        return high // 2
    if high - low <= max(1, low // _NEAR):
        return 0
    return (low + high) // 2
