"""Memory as bars: by kind and by layer, against the line of a device's memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tpu_estimator_compat.tools.preflight.report import Layer, Report
from tpu_estimator_compat.tools.reports import numbers
from tpu_estimator_compat.tools.reports.markup import Html, element

_MARGIN = 1.02
"""A bar's width divided by its content's, so that the content ends before the edge."""
_NUMBERED = 3.0
"""Percent of the bar's width from which a segment has room for its layer's number."""

KINDS_OF_LAYERS = ("variables", "slots", "temporaries")
"""Fields of `Layer`, in the order of a bar; their names are fills too."""

FILLS = ("arguments", "outputs", "temporaries", "code", "variables", "slots", "input", "rest")
"""Names of the fills of segments; some have a pattern, see `patterns`."""


@dataclasses.dataclass(frozen=True)
class Segment:
    """A part of a bar; shows the `number` of its layer, unless 0, where there is room."""

    name: str
    size: int
    fill: str
    number: int = 0
    meaning: str = ""


def by_kind(report: Report) -> list[Segment]:
    """Memory by kind, as the compiler counts it; if not compiled, variables and input."""
    memory = report.memory
    if memory is None:
        segments = [
            Segment("variables", report.variable_bytes, "variables", 0, "with optimizer slots"),
            Segment("input", report.input_bytes, "input", 0, "one replica's batch"),
        ]
    else:
        new = max(0, memory.outputs - memory.aliased)
        segments = [
            Segment("arguments", memory.arguments, "arguments", 0, "variables and input"),
            Segment("new outputs", new, "outputs", 0, "those that do not replace an argument"),
            Segment("temporaries", memory.temporaries, "temporaries", 0, "activations, gradients"),
            Segment("code", memory.code, "code", 0, "the compiled program"),
        ]
    return [segment for segment in segments if segment.size]


def by_layer(report: Report) -> list[Segment]:
    """Variables and slots of each layer, then the temporaries of all, then the rest.

    Temporaries are not split: those of different layers can share memory, so they do not add up to
    the total.
    """
    segments = [
        Segment(layer.name, layer.variables + layer.slots, "variables", number)
        for number, layer in enumerate(report.layers, 1)
        if layer.variables + layer.slots
    ]
    if not segments:
        return []
    temporaries = report.memory.temporaries if report.memory else 0
    total = sum(segment.size for segment in by_kind(report))
    rest = total - temporaries - sum(segment.size for segment in segments)
    segments.append(Segment("temporaries of all layers", temporaries, "temporaries"))
    segments.append(Segment("the rest", max(0, rest), "rest"))
    return [segment for segment in segments if segment.size]


def bar(title: str, segments: Sequence[Segment], hbm: int, said: Sequence[Segment]) -> Html:
    """Segments in proportion to their bytes, with a line at `hbm`; the label lists `said`."""
    total = sum(segment.size for segment in segments)
    percent = 100 / (_MARGIN * max(total, hbm))
    shapes, start = [], 0
    for segment in segments:
        shapes += _shapes(segment, start * percent, percent)
        start += segment.size
    if total > hbm:
        shapes.append(_rect("over", hbm * percent, (total - hbm) * percent, "17", "34"))
    parts = ", ".join(f"{segment.name} {numbers.size(segment.size)}" for segment in said)
    return element(
        "svg",
        element("rect", class_="ground", x="0", y="20", width="100%", height="28"),
        *shapes,
        *_line(hbm, hbm * percent),
        class_="bar",
        role="img",
        aria_label=f"{title}: {numbers.size(total)} of {numbers.size(hbm)}: {parts}",
        width="100%",
        height="56",
    )


def _line(hbm: int, x: float) -> list[Html]:
    """The line at a device's memory, with its label on the side where there is room."""
    return [
        element("line", class_="hbm", x1=_of(x), x2=_of(x), y1="14", y2="54"),
        element(
            "text",
            f"memory {numbers.size(hbm)}",
            class_="hbm",
            x=_of(x),
            y="11",
            text_anchor="end" if x > 50 else "start",
        ),
    ]


def bytes_of(layer: Layer) -> int:
    return layer.variables + layer.slots + layer.temporaries


def layer_bar(layer: Layer, largest: int) -> Html:
    """Variables, slots and temporaries of one layer, in proportion to the largest layer's."""
    shapes, start = [], 0.0
    for fill in KINDS_OF_LAYERS:
        width = 100 * getattr(layer, fill) / max(1, largest)
        if width:
            shapes.append(_rect(_classes(fill), start, width, "4", "12"))
        start += width
    return element("svg", *shapes, class_="layer", aria_hidden="true", width="100%", height="18")


def swatch(fill: str) -> Html:
    return element(
        "svg", _rect(_classes(fill), 0, 100, "0", "14"), aria_hidden="true", width="14", height="14"
    )


def patterns() -> Html:
    """The patterns that tell fills apart without colour; once on a page."""
    marks = {
        "outputs": element("circle", class_="mark", cx="4", cy="4", r="1.6"),
        "temporaries": element("rect", class_="mark", width="2.5", height="8"),
        "slots": element("circle", class_="mark", cx="4", cy="4", r="1.6"),
        "rest": element("rect", class_="mark", width="1", height="8"),
    }
    made = [
        element(
            "pattern",
            element("rect", class_=f"fill-{name}", width="8", height="8"),
            mark,
            id=f"pattern-{name}",
            width="8",
            height="8",
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        )
        for name, mark in marks.items()
    ]
    # Not `display: none`, with which browsers do not draw the patterns.
    return element(
        "svg", element("defs", *made), class_="patterns", aria_hidden="true", width="0", height="0"
    )


def _shapes(segment: Segment, start: float, percent: float) -> list[Html]:
    width = segment.size * percent
    title = element("title", f"{segment.name}: {numbers.size(segment.size)}")
    # Neighbouring layers differ in tint: lines between them would cover the narrow ones.
    tint = " even" if segment.number and segment.number % 2 == 0 else ""
    classes = f"{_classes(segment.fill)}{tint}"
    shapes = [_rect(classes, start, width, "20", "28", title)]
    if segment.number and width >= _NUMBERED:
        middle = _of(start + width / 2)
        attributes = {"class": "number", "x": middle, "y": "38", "text_anchor": "middle"}
        shapes.append(element("text", str(segment.number), **attributes))
    return shapes


def _classes(fill: str) -> str:
    return f"segment fill-{fill} with-{fill}"


def _rect(classes: str, x: float, width: float, y: str, height: str, *content: Html) -> Html:
    return element("rect", *content, class_=classes, x=_of(x), width=_of(width), y=y, height=height)


def _of(percent: float) -> str:
    return f"{percent:.4f}%"
