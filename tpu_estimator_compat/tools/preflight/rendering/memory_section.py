"""The memory of each report on the page: a bar by kind, a bar by layer, a list of layers."""

from __future__ import annotations

from collections.abc import Sequence

from tpu_estimator_compat.tools.preflight.rendering import bars, comparison
from tpu_estimator_compat.tools.preflight.report import Layer, Report
from tpu_estimator_compat.tools.reports import numbers
from tpu_estimator_compat.tools.reports.markup import Html, element, together

_LAYERS = 30


def memory_section(reports: Sequence[Report]) -> Html:
    """A part for each report; only the first list of layers is open, since they are alike."""
    parts = []
    is_first = True
    for label, report in zip(comparison.labels(reports), reports, strict=True):
        parts.append(_memory(label, report, is_first))
        is_first = is_first and not report.layers
    return element("section", element("h2", "Memory of one device"), *parts)


def _memory(label: str, report: Report, is_open: bool) -> Html:
    segments = bars.by_kind(report)
    if not segments:
        why = "the step has no variables and no input"
        if report.reached is None:
            why = "the step could not be captured"
        return together(element("h3", label), element("p", f"Not known: {why}."))
    parts = [element("h3", label), element("p", _said(report, segments), class_="soft")]
    parts += _bar("By kind", segments, report.hbm, segments)
    if layers := bars.by_layer(report):
        parts += _bar("By layer", layers, report.hbm, _summed(layers))
    if report.layers:
        parts.append(_layers(report, is_open))
    return together(*parts)


def _bar(
    title: str, segments: Sequence[bars.Segment], hbm: int, legend: Sequence[bars.Segment]
) -> list[Html]:
    caption = element("div", title, class_="caption")
    return [caption, bars.bar(title, segments, hbm, legend), _legend(legend)]


def _summed(segments: Sequence[bars.Segment]) -> list[bars.Segment]:
    total = sum(segment.size for segment in segments if segment.number)
    layers = bars.Segment("layers", total, "variables", meaning="variables and slots, numbered")
    return [layers, *(segment for segment in segments if not segment.number)]


def _said(report: Report, segments: Sequence[bars.Segment]) -> str:
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


def _legend(segments: Sequence[bars.Segment]) -> Html:
    return element("ul", *(element("li", *_entry(s)) for s in segments), class_="legend")


def _entry(segment: bars.Segment) -> list[Html]:
    entry = [
        bars.swatch(segment.fill),
        together(f"{segment.name} "),
        element("strong", numbers.size(segment.size)),
    ]
    if segment.meaning:
        entry.append(element("span", f" ({segment.meaning})", class_="soft"))
    return entry


def _layers(report: Report, is_open: bool) -> Html:
    """The largest layers in the order of the graph; all others in one row."""
    kinds = [kind for kind in bars.KINDS_OF_LAYERS if any(getattr(x, kind) for x in report.layers)]
    numbered = list(enumerate(report.layers, 1))
    by_size = sorted(numbered, key=lambda pair: -bars.bytes_of(pair[1]))
    listed = [(str(number), layer) for number, layer in sorted(by_size[:_LAYERS])]
    if others := [layer for _, layer in by_size[_LAYERS:]]:
        listed.append(("", _sum(others)))
    scale = max(bars.bytes_of(layer) for _, layer in listed)
    rows = [_layer(number, layer, kinds, scale) for number, layer in listed]
    header = [
        element("td"),
        element("th", "Layer", scope="col"),
        element("td", class_="bar-cell"),
        *(element("th", bars.swatch(k), f" {k}", scope="col", class_="number-cell") for k in kinds),
    ]
    table = element("table", element("thead", element("tr", *header)), element("tbody", *rows))
    attributes = {"open": "open"} if is_open else {}
    return element(
        "details",
        element("summary", f"{len(report.layers)} layers"),
        element("div", table, class_="scroll", tabindex="0"),
        element("p", _remark(report), class_="soft"),
        **attributes,
    )


def _layer(number: str, layer: Layer, kinds: Sequence[str], scale: int) -> Html:
    sizes = [getattr(layer, kind) for kind in kinds]
    return element(
        "tr",
        element("td", number, class_="number-cell soft"),
        element("th", element("code", layer.name), scope="row"),
        element("td", bars.layer_bar(layer, scale), class_="bar-cell"),
        *(element("td", numbers.size(n) if n else "\u2013", class_="number-cell") for n in sizes),
    )


def _sum(layers: Sequence[Layer]) -> Layer:
    return Layer(
        f"{len(layers)} smaller layers",
        sum(layer.variables for layer in layers),
        sum(layer.slots for layer in layers),
        sum(layer.temporaries for layer in layers),
    )


def _remark(report: Report) -> str:
    numbered = "A layer's number is that in the bar by layer, where it has room."
    if not any(layer.temporaries for layer in report.layers):
        return numbered
    return (
        f"{numbered} Temporaries are the largest that the compiler names an operation for. Those "
        "of different layers can share memory: they need not add up to what the step needs."
    )
