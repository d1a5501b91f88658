"""Finds the first difference along the data flow: input, loss, gradient, update, later steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from tpu_estimator_compat.tools.compare.evidence import Evidence
from tpu_estimator_compat.tools.compare.report import (
    ArrayComparison,
    CurveComparison,
    FirstDifference,
    Report,
    Stage,
)

_MOST_NAMES = 5


def find(report: Report, old: Evidence, new: Evidence) -> FirstDifference | None:
    """The first difference that is more than rounding; None if there is none."""
    found = (
        _input(report)
        or _forward(report)
        or _update(report, old, new)
        or _later(report, old, new)
        or _results(report)
        or _files(report)
    )
    if found is not None and found.stage in (Stage.FORWARD, Stage.GRADIENT):
        for compared in report.first_step or ():
            if not compared.values.agreement.agrees:
                what = f"{found.what}; {compared.op} ({compared.type}) differs first"
                return dataclasses.replace(found, what=what, source=compared.source)
    return found


def _input(report: Report) -> FirstDifference | None:
    differing = _differing(report.input)
    if not differing:
        return None
    what = f"{_named(differing)} of the first batch {_are(differing)} not the same"
    return FirstDifference(Stage.INPUT, what, _first_step(report), _names(differing))


def _forward(report: Report) -> FirstDifference | None:
    loss = report.loss
    if loss is None or not report.first_update or not loss.steps:
        return None
    if loss.first_step is None or loss.first_step > loss.steps[0]:
        return None
    assert loss.old is not None
    assert loss.new is not None
    what = (
        f"the loss of the first step is {loss.new.values[0]:.7g} instead of "
        f"{loss.old.values[0]:.7g}, on the same input and variables"
    )
    return FirstDifference(Stage.FORWARD, what, loss.first_step, ("loss",))


def _update(report: Report, old: Evidence, new: Evidence) -> FirstDifference | None:
    differing = _differing(report.first_update)
    stage, named = Stage.UPDATE, differing
    if one_sided := [c for c in differing if c.old is None or c.new is None]:
        named = one_sided
        what = f"{_named(named)} {_are(named)} a variable of one run only"
    elif still := [c for c in differing if _stands_still(c.name, old, new)]:
        named = still
        verb = "changes" if len(still) == 1 else "change"
        what = f"{_named(still)} {verb} in the first step of one run only: an update does not run"
    elif slots := [c for c in differing if _is_slot(c.name, old.trainable)]:
        stage, named = Stage.GRADIENT, slots
        scale = _common_ratio([c.name for c in slots], old, new)
        # If a gradient is k times as large, its second moment is k * k times as large.
        times = f", {scale:.6g} times as large" if scale else ""
        what = f"the optimizer's slots differ{times}: {_named(slots)}"
    elif differing:
        what = _of_update(differing, old, new)
    else:
        return None
    return FirstDifference(stage, what, _first_step(report), _names(named))


def _of_update(differing: Sequence[ArrayComparison], old: Evidence, new: Evidence) -> str:
    trained = {c.name for c in differing} & old.trainable
    if not trained:
        return f"{_named(differing)} {_are(differing)} updated to other values"
    has_slots = any(_is_slot(name, old.trainable) for name in old.first_update)
    scale = _common_ratio(sorted(trained), old, new)
    if scale:
        cause = "the learning rate" if has_slots else "the learning rate, or the gradient's scale"
        return (
            f"each variable changes {scale:.6g} times as much: {cause} differs. This holds for "
            f"{_named(differing)}"
        )
    slots = "the optimizer's slots agree, but its update differs"
    cause = f"{slots}: its rule, epsilon, weight decay or clipping" if has_slots else "the update"
    return f"{_named(differing)} {_are(differing)} updated to other values; {cause}"


def _later(report: Report, old: Evidence, new: Evidence) -> FirstDifference | None:
    curves = [c for c in report.curves if not c.agreement.agrees]
    variables = _differing(report.variables)
    if not curves and not variables:
        return None
    worst = f"; at the end, the largest difference is in {_named(variables)}" if variables else ""
    if not curves:
        last = report.loss.steps[-1] if report.loss and report.loss.steps else None
        what = f"the last variables differ: {_named(variables)}"
        return FirstDifference(Stage.LATER, what, last, _names(variables))
    first = min(curves, key=lambda c: (_step(c), c.name != "loss"))
    step = _step(first)
    other_input = _first_other_input(report, old, new)
    if other_input is not None and other_input[0] <= step:
        step, features = other_input
        what = f"{', '.join(features)} of the batch of step {step} differ{worst}"
        return FirstDifference(Stage.INPUT, what, step, tuple(features))
    one_sided = first.old is None or first.new is None
    how = "is written by one run only" if one_sided else "differs"
    what = f"{first.name} {how}{worst}"
    return FirstDifference(Stage.LATER, what, step, _names(variables) or (first.name,))


def _results(report: Report) -> FirstDifference | None:
    kinds = ((Stage.EVALUATION, report.evaluations), (Stage.PREDICTION, report.predictions))
    for stage, compared in kinds:
        differing = _differing(compared)
        if differing:
            what = f"{_named(differing)} {_are(differing)} not the same, after the same training"
            return FirstDifference(stage, what, None, _names(differing))
    return None


def _files(report: Report) -> FirstDifference | None:
    for names in report.names:
        if not names.agrees:
            missing = ", ".join((*names.only_old, *names.only_new)[:_MOST_NAMES])
            what = f"{names.what} in one run only: {missing}"
            return FirstDifference(Stage.FILES, what, None, (*names.only_old, *names.only_new))
    return None


def _first_other_input(
    report: Report, old: Evidence, new: Evidence
) -> tuple[int, list[str]] | None:
    """The first step whose inputs have different checksums, and the features that differ."""
    steps = report.loss.steps if report.loss else ()
    for step, a, b in zip(steps, old.checksums, new.checksums, strict=False):
        features = sorted(name for name in a.keys() & b.keys() if a[name] != b[name])
        if features:
            return step, features
    return None


def _stands_still(name: str, old: Evidence, new: Evidence) -> bool:
    """Whether a variable changes in the first step of exactly one run."""
    if name not in old.start or _is_slot(name, old.trainable):
        return False
    start = old.start[name]
    changes = [not np.array_equal(start, run.first_update[name]) for run in (old, new)]
    return changes[0] != changes[1]


def _is_slot(name: str, trainable: frozenset[str]) -> bool:
    parts = name.split("/")
    return any("/".join(parts[:n]) in trainable for n in range(1, len(parts)))


def _common_ratio(names: Sequence[str], old: Evidence, new: Evidence) -> float | None:
    """The ratio of new to old changes that all these variables share; None if none, or if 1."""
    ratios = []
    for name in names:
        if name not in old.start:
            return None
        start = old.start[name].astype(np.float64)
        before, after = (run.first_update[name].astype(np.float64) - start for run in (old, new))
        large = np.abs(before) > 0.5 * np.abs(before).max(initial=0.0)
        if large.any():
            ratios.append(after[large] / before[large])
    if not ratios:
        return None
    every = np.concatenate(ratios)
    middle = float(np.median(every))
    low, high = np.percentile(every, [10, 90])
    alike = high - low <= 0.01 * abs(middle)
    return middle if alike and abs(middle - 1) > 1e-4 else None


def _differing(compared: Sequence[ArrayComparison]) -> list[ArrayComparison]:
    return [c for c in compared if not c.agreement.agrees]


def _step(curve: CurveComparison) -> int:
    if curve.first_step is not None:
        return curve.first_step
    known = curve.old or curve.new
    return known.steps[0] if known and known.steps else 0


def _first_step(report: Report) -> int | None:
    return report.loss.steps[0] if report.loss and report.loss.steps else None


def _names(compared: Sequence[ArrayComparison]) -> tuple[str, ...]:
    return tuple(c.name for c in compared[:_MOST_NAMES])


def _named(compared: Sequence[ArrayComparison]) -> str:
    more = len(compared) - _MOST_NAMES
    rest = f" and {more} more" if more > 0 else ""
    return ", ".join(_names(compared)) + rest


def _are(compared: Sequence[ArrayComparison]) -> str:
    return "is" if len(compared) == 1 else "are"
