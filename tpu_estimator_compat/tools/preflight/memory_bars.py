"""The memory of reports, for the page: a bar by kind, a bar by layer, a list of layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tpu_estimator_compat.tools.preflight.report import Layer, Report
from tpu_estimator_compat.tools.reports import numbers
from tpu_estimator_compat.tools.reports.document import (
    Bar,
    Block,
    Cell,
    Column,
    Folded,
    Paragraph,
    Part,
    Section,
    Span,
    Table,
    Tone,
)

_MARGIN = 1.02
"""A bar's width divided by its content's, so that the content ends before the edge."""
_KINDS = ("variables", "slots", "temporaries")
"""Fields of `Layer`, in the order of a bar; their names are fills too."""


@dataclasses.dataclass(frozen=True)
class Segment:
    """A part of a bar, with the number of its layer, if any."""

    name: str
    size: int
    fill: str
    meaning: str = ""
    number: str = ""


def memory(reports: Sequence[Report]) -> Section:
    """A part for each report; only the first list of layers is open, since they are alike."""
    first = next((report for report in reports if report.layers), None)
    parts = [Section(report.topology, _memory(report, report is first)) for report in reports]
    return Section("Memory of one device", parts)


def _memory(report: Report, is_open: bool) -> list[Block]:
    segments = by_kind(report)
    if not segments:
        why = "the step has no variables and no input"
        if report.reached is None:
            why = "the step could not be captured"
        return [Paragraph(f"Not known: {why}.")]
    said = Paragraph(_said(report, segments), Tone.FAINT)
    blocks: list[Block] = [said, bar("By kind", segments, report.hbm, segments)]
    if layers := by_layer(report):
        blocks.append(bar("By layer", layers, report.hbm, _summed(layers)))
    if report.layers:
        blocks.append(_layers(report, is_open))
    return blocks


def by_kind(report: Report) -> list[Segment]:
    """Memory by kind, as the compiler counts it; if not compiled, variables and input."""
    memory = report.memory
    if memory is None:
        segments = [
            Segment("variables", report.variable_bytes, "variables", "with optimizer slots"),
            Segment("input", report.input_bytes, "input", "one replica's batch"),
        ]
    else:
        new = max(0, memory.outputs - memory.aliased)
        segments = [
            Segment("arguments", memory.arguments, "arguments", "variables and input"),
            Segment("new outputs", new, "outputs", "those that do not replace an argument"),
            Segment("temporaries", memory.temporaries, "temporaries", "activations, gradients"),
            Segment("code", memory.code, "code", "the compiled program"),
        ]
    return [segment for segment in segments if segment.size]


def by_layer(report: Report) -> list[Segment]:
    """Variables and slots of each layer, then the temporaries of all, then the rest.

    Temporaries are not split: those of different layers can share memory, so they do not add up to
    the total.
    """
    segments = [
        Segment(layer.name, layer.variables + layer.slots, "variables", number=str(number))
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


def _summed(segments: Sequence[Segment]) -> list[Segment]:
    """The legend of a bar by layer: its layers are one entry."""
    total = sum(segment.size for segment in segments if segment.number)
    layers = Segment("layers", total, "variables", "variables and slots, numbered")
    return [layers, *(segment for segment in segments if not segment.number)]


def bar(caption: str, segments: Sequence[Segment], hbm: int, legend: Sequence[Segment]) -> Bar:
    """Segments in proportion to their bytes, with a mark at `hbm`."""
    total = sum(segment.size for segment in segments)
    whole = _MARGIN * max(total, hbm)
    parts = [
        Part(s.size / whole, s.fill, f"{s.name}: {numbers.size(s.size)}", s.number)
        for s in segments
    ]
    listed = ", ".join(f"{s.name} {numbers.size(s.size)}" for s in legend)
    said = f"{caption}: {numbers.size(total)} of {numbers.size(hbm)}: {listed}"
    meanings = [
        (
            s.fill,
            (
                f"{s.name} ",
                Span(numbers.size(s.size), Tone.STRONG),
                f" ({s.meaning})" if s.meaning else "",
            ),
        )
        for s in legend
    ]
    return Bar(parts, said, hbm / whole, f"memory {numbers.size(hbm)}", caption, meanings)


def _said(report: Report, segments: Sequence[Segment]) -> str:
    memory = report.memory
    total = sum(segment.size for segment in segments)
    over = total - report.hbm
    more = f"{numbers.size(over)} more than the device has."
    if memory is None:
        alone = f" The two alone are {more}" if over > 0 else ""
        return (
            "The compiler gave no figures. The bar shows the variables and one replica's "
            f"input only: temporaries and code come on top.{alone}"
        )
    used = f"{numbers.size(memory.total)} by the compiler's count"
    return f"{used}: {more}" if over > 0 else f"{used}: {numbers.size(-over)} are left."


def _layers(report: Report, is_open: bool) -> Folded:
    """The layers in the order of the graph, in proportion to the largest one."""
    kinds = [kind for kind in _KINDS if any(getattr(x, kind) for x in report.layers)]
    largest = max(_total(layer) for layer in report.layers) or 1
    rows: list[tuple[Cell, ...]] = [
        (
            (Span(f"{number} ", Tone.FAINT), Span(layer.name, code=True)),
            Bar(
                [Part(getattr(layer, kind) / largest, kind) for kind in kinds],
                f"{layer.name}: {numbers.size(_total(layer))}",
            ),
            *(numbers.size(n) if (n := getattr(layer, kind)) else "" for kind in kinds),
        )
        for number, layer in enumerate(report.layers, 1)
    ]
    heads: list[str | Column] = [
        "Layer",
        "",
        *(Column(kind, number=True, fill=kind) for kind in kinds),
    ]
    numbered = "A layer's number is that in the bar by layer, where it has room."
    shared = (
        " Temporaries are the largest that the compiler names an operation for. Those of different "
        "layers can share memory: they need not add up to what the step needs."
    )
    remark = numbered + (shared if "temporaries" in kinds else "")
    title = f"{len(report.layers)} layers"
    return Folded(title, [Table(rows, heads), Paragraph(remark, Tone.FAINT)], is_open)


def _total(layer: Layer) -> int:
    return layer.variables + layer.slots + layer.temporaries
