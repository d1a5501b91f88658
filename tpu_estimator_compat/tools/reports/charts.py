"""Curves over steps as SVG, linear or logarithmic."""

from __future__ import annotations

import dataclasses
import json
import math
import operator
from collections.abc import Callable, Iterator, Sequence

from tpu_estimator_compat.tools.reports.document import Curves, Line
from tpu_estimator_compat.tools.reports.markup import Html, element

WIDTH, HEIGHT = 860, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 10, 34
_MOST_POINTS = 1500
"""The most points of a line without gaps; longer ones show the extremes of each part."""


@dataclasses.dataclass(frozen=True)
class Axis:
    """The axis of a chart: value `low` at coordinate `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The coordinate of a value; the axis' ends for values beyond them."""
        share = (self._scaled(value) - self._scaled(self.low)) / (
            self._scaled(self.high) - self._scaled(self.low)
        )
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.logarithmic else value

    def ticks(self) -> list[float]:
        """Round values in the axis' range: 1, 2 or 5 times a power of ten, or powers of ten."""
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            every = max(1, math.ceil((last - first) / 6))
            return [10.0**exponent for exponent in range(first, last + 1, every)]
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        size = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
        first, last = math.ceil(self.low / size), math.floor(self.high / size)
        return [number * size for number in range(first, last + 1)]


def figure(curves: Curves) -> Html:
    """A chart with its captions; the values at each step are in its attributes, for the script."""
    chart = _chart(curves)
    if chart is None:
        return element("p", f"{curves.caption}: no finite values.", class_="faint")
    steps = sorted({step for line in curves.lines for step in line.steps})
    values = []
    for line in curves.lines:
        by_step = dict(zip(line.steps, line.values, strict=True))
        texts = [f"{by_step[step]:.6g}" if step in by_step else None for step in steps]
        values.append((line.name, texts))
    keys = (element("span", line.name, class_=f"key {line.style}") for line in curves.lines)
    return element(
        "figure",
        element("figcaption", curves.caption, *keys),
        chart,
        element("figcaption", element("output", Html("\u00a0"))),
        data_steps=json.dumps(steps),
        data_lines=json.dumps(values),
    )


def _chart(curves: Curves) -> Html | None:
    """The SVG; None without any value to draw."""
    lines, logarithmic = curves.lines, curves.logarithmic
    values = [v for line in lines for v in line.values if math.isfinite(v)]
    steps = [step for line in lines for step in line.steps]
    if logarithmic:
        values = [v for v in values if v > 0]
    if not values:
        return None
    vertical = _range(values, logarithmic)
    horizontal = _range([float(step) for step in steps], False)
    y = Axis(*vertical, HEIGHT - _BOTTOM, _TOP, logarithmic)
    x = Axis(min(steps), max(horizontal[1], min(steps) + 1), _LEFT, WIDTH - _RIGHT)
    return element(
        "svg",
        *_vertical_grid(y),
        *_horizontal_ticks(x),
        *(_path(line, x, y) for line in lines),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=", ".join(line.name for line in lines) + " over global steps",
        data_low=repr(x.low),
        data_high=repr(x.high),
        data_left=str(_LEFT),
        data_right=str(WIDTH - _RIGHT),
    )


def _range(values: Sequence[float], logarithmic: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    if logarithmic:
        exponents = math.floor(math.log10(low)), math.ceil(math.log10(high))
        return 10.0 ** exponents[0], 10.0 ** max(exponents[1], exponents[0] + 1)
    margin = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
    return low - margin, high + margin


def _vertical_grid(axis: Axis) -> Iterator[Html]:
    for value in axis.ticks():
        y = axis(value)
        ends = {"x1": _at(_LEFT), "x2": _at(WIDTH - _RIGHT), "y1": _at(y), "y2": _at(y)}
        yield element("line", **ends, class_="grid")
        yield _text(f"{value:.6g}", _LEFT - 8, y + 4, "end")


def _horizontal_ticks(axis: Axis) -> Iterator[Html]:
    for value in axis.ticks():
        if value == int(value):
            yield _text(f"{value:.0f}", axis(value), HEIGHT - _BOTTOM + 16, "middle")
    yield _text("global step", WIDTH - _RIGHT, HEIGHT - 4, "end")


def _text(said: str, x: float, y: float, anchor: str) -> Html:
    return element("text", said, x=_at(x), y=_at(y), text_anchor=anchor)


def _at(coordinate: float) -> str:
    return f"{coordinate:.2f}"


def _path(line: Line, x: Callable[[float], float], y: Callable[[float], float]) -> Html:
    drawn, moves = [], True
    for step, value in _thinned(line):
        if math.isfinite(value):
            drawn.append(f"{'M' if moves else 'L'}{x(step):.1f} {y(value):.1f}")
        moves = not math.isfinite(value)
    # A point without neighbours is visible: its line has round ends.
    points = " ".join(drawn) + (" h0.01" if drawn else "")
    return element("path", d=points, class_=f"line {line.style}")


def _thinned(line: Line) -> list[tuple[int, float]]:
    points = list(zip(line.steps, line.values, strict=True))
    if len(points) <= _MOST_POINTS:
        return points
    size = math.ceil(2 * len(points) / _MOST_POINTS)
    kept = []
    for start in range(0, len(points), size):
        part = points[start : start + size]
        finite = [p for p in part if math.isfinite(p[1])]
        # Where a value is not finite, the gap is kept.
        gaps = [p for p in part if not math.isfinite(p[1])][:1]
        by_value = operator.itemgetter(1)
        ends = {min(finite, key=by_value), max(finite, key=by_value)} if finite else set()
        kept += sorted([*ends, *gaps])
    return kept
