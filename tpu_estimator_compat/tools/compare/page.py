"""A report as one self-contained HTML page: no network, no further files."""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Iterable, Sequence

from tpu_estimator_compat.tools.compare import charts
from tpu_estimator_compat.tools.compare.report import (
    Agreement,
    Array,
    ArrayComparison,
    Curve,
    CurveComparison,
    FirstDifference,
    NamesComparison,
    OpComparison,
    Report,
    Side,
    Stage,
    Verdict,
)
from tpu_estimator_compat.tools.reports import numbers
from tpu_estimator_compat.tools.reports.markup import Html, document, element, together

_HERE = pathlib.Path(__file__).parent
_SHOWN = 40
"""The most rows of a table that are open; the others are folded."""
_FLOOR = 1e-9
"""Relative differences below it have no bar."""

_STYLES = {
    Verdict.SAME: "same",
    Verdict.ROUNDING: "rounding",
    Verdict.DIVERGES: "diverges",
    Verdict.DIFFERENT: "different",
    Verdict.UNKNOWN: "unknown",
}


def page(report: Report) -> str:
    """The page's text. Figures are rounded; the attribute `value` of `<data>` is exact."""
    title = f"{report.old.name} against {report.new.name}"
    body = element(
        "body",
        element("h1", title),
        _verdict(report),
        _pre(" ".join(report.command)) if report.command else Html(),
        element("div", _side(report.old, "old"), _side(report.new, "new"), class_="sides"),
        _first_difference(report.first_difference),
        _loss(report),
        _speeds(report.old, report.new),
        _arrays("Variables of the last checkpoint", report.variables),
        _arrays("Variables after the first step", report.first_update),
        _arrays("Input of the first step", report.input),
        _arrays("Evaluation", report.evaluations),
        _arrays("Predictions", report.predictions),
        _ops(report.first_step),
        *_scalars(report.scalars),
        _names(report.names),
        _judgement(report),
        element("script", Html((_HERE / "page.js").read_text(encoding="utf-8"))),
    )
    css = (_HERE / "page.css").read_text(encoding="utf-8")
    return document(f"{title}: {report.verdict.value}", css, body)


def _section(title: str, *children: str) -> Html:
    return element("section", element("h2", title), *children)


def _verdict(report: Report) -> Html:
    verdict = report.verdict
    steps = f"{report.steps} training steps were compared." if report.steps else None
    return element(
        "div",
        element("strong", verdict.value[0].upper() + verdict.value[1:]),
        element("p", report.summary),
        *(element("p", said) for said in (report.unknown, report.instead) if said),
        element("p", steps, class_="faint") if steps else Html(),
        class_=f"verdict {_STYLES[verdict]}",
    )


def _side(side: Side, which: str) -> Html:
    versions = ", ".join(f"{name} {version}" for name, version in side.versions.items())
    failure = side.failure
    return element(
        "div",
        element("div", side.name),
        element("div", " ".join(side.script), class_="name") if side.script else Html(),
        element("div", versions, class_="faint") if versions else Html(),
        element("div", side.folder, class_="name faint") if side.folder else Html(),
        element("p", failure.message, class_="differs") if failure else Html(),
        _pre(failure.traceback) if failure and failure.traceback else Html(),
        class_=f"side {which}-side",
    )


def _first_difference(difference: FirstDifference | None) -> Html:
    if difference is None:
        return Html()
    reached = list(Stage).index(difference.stage)
    where = f" (step {difference.step})" if difference.step is not None else ""
    source = difference.source
    return _section(
        "What differs first",
        element("ol", *(_stage(stage, n, reached) for n, stage in enumerate(Stage)), class_="way"),
        element("p", difference.what + where + difference.by_whom),
        element("p", *_joined(difference.names)) if difference.names else Html(),
        _pre(f"{source}\n{source.code}".rstrip()) if source else Html(),
    )


def _stage(stage: Stage, number: int, reached: int) -> Html:
    style = "failed" if number == reached else "passed" if number < reached else None
    return element("li", stage.value, class_=style)


def _joined(names: Sequence[str]) -> Iterable[str]:
    for number, name in enumerate(names):
        yield ", " if number else ""
        yield element("code", name)


def _loss(report: Report) -> Html:
    if report.loss is None:
        return Html()
    return _section("Loss", *_curve(report.loss, report.old.name, report.new.name))


def _scalars(scalars: Sequence[CurveComparison]) -> Iterable[Html]:
    if not scalars:
        return
    rows = [
        element(
            "tr",
            element("td", scalar.name, class_="name"),
            _difference_cell(scalar.largest if scalar.steps else None),
            element("td", "" if scalar.first_step is None else str(scalar.first_step)),
            _agreement(scalar),
        )
        for scalar in scalars
    ]
    heads = ("Scalar", "largest relative difference#", "first step", "")
    parts = [element("details", element("summary", s.name), *_curve(s)) for s in scalars]
    yield _section("Scalars of training", _table(heads, rows), *parts)


def _curve(compared: CurveComparison, old: str = "old", new: str = "new") -> Iterable[str]:
    lines = [
        charts.Line(name, style, curve.steps, curve.values)
        for name, style, curve in ((old, "old", compared.old), (new, "new", compared.new))
        if curve is not None
    ]
    yield _figure(compared.name, lines)
    if not compared.steps:
        yield element("p", "The two have no step in common.")
    elif compared.largest == 0:
        yield element("p", f"The two are equal at each of {len(compared.steps)} steps.")
    else:
        curve = Curve(compared.steps, compared.difference)
        limit = Curve(compared.steps, compared.tolerance)
        lines = [
            charts.Line("rounding limit", "limit", limit.steps, limit.values),
            charts.Line("relative difference", "difference", curve.steps, curve.values),
        ]
        yield _figure(f"Relative difference of {compared.name}", lines, logarithmic=True)
        yield element("p", "Largest: ", _difference(compared.largest), *_first_step(compared))


def _first_step(compared: CurveComparison) -> Iterable[str]:
    if compared.first_step is not None:
        yield f"; above the rounding limit from step {compared.first_step} on."
    else:
        yield "; never above the rounding limit."


def _figure(caption: str, lines: Sequence[charts.Line], *, logarithmic: bool = False) -> Html:
    chart = charts.curves(lines, logarithmic=logarithmic)
    if chart is None:
        return element("p", f"{caption}: no finite values.", class_="faint")
    steps = sorted({step for line in lines for step in line.steps})
    values = []
    for line in lines:
        by_step = dict(zip(line.steps, line.values, strict=True))
        texts = [f"{by_step[step]:.6g}" if step in by_step else None for step in steps]
        values.append((line.name, texts))
    keys = (element("span", line.name, class_=f"key {line.style}") for line in lines)
    return element(
        "figure",
        element("figcaption", caption, *keys),
        chart,
        element("figcaption", element("output", Html("&nbsp;"))),
        data_steps=json.dumps(steps),
        data_lines=json.dumps(values),
    )


def _speeds(old: Side, new: Side) -> Html:
    if old.speed is None or new.speed is None:
        return Html()
    of_old, of_new = old.speed.figures(), new.speed.figures()
    rows = [_speed(what, of_old[what], of_new[what]) for what in of_old if what in of_new]
    heads = ("", "old#", "new#", "new / old#", "")
    note = "Each step was recorded, which costs time on both sides; no part of the verdict."
    faint = element("p", note, class_="faint")
    return _section("Speed", _table(heads, rows), faint) if rows else Html()


def _speed(title: str, old: tuple[float, str], new: tuple[float, str]) -> Html:
    most = max(old[0], new[0])
    bars = [
        element(
            "div",
            element("i", style=f"width: {100 * value / most if most else 0:.1f}%"),
            class_=f"bar pair key-{which}",
        )
        for which, (value, _) in (("old", old), ("new", new))
    ]
    cells = [
        element("td", element("data", text, value=repr(value)), class_="number")
        for value, text in (old, new)
    ]
    ratio = new[0] / old[0] if old[0] else None
    return element("tr", element("td", title), *cells, _cell(ratio), element("td", *bars))


def _arrays(title: str, compared: Sequence[ArrayComparison]) -> Html:
    if not compared:
        return Html()
    heads = ("Name", "old", "new", "relative difference", "#", "")
    rows = [_array(c.name, c) for c in sorted(compared, key=_badness)]
    return _section(title, *_long_table(heads, rows))


def _ops(compared: Sequence[OpComparison] | None) -> Html:
    if not compared:
        return Html()
    heads = ("Operation", "old", "new", "relative difference", "#", "")
    rows = [
        _array(f"{c.op} ({c.type})" + (f" {c.source}" if c.source else ""), c.values)
        for c in compared
    ]
    return _section("Activations and gradients of the first step", *_long_table(heads, rows))


def _badness(compared: ArrayComparison) -> tuple[bool, float]:
    """A key to sort the worst first: arrays that disagree, then larger differences."""
    largest = compared.largest
    if largest is None or math.isnan(largest):
        return compared.agreement.agrees, -math.inf
    return compared.agreement.agrees, -largest


def _array(name: str, compared: ArrayComparison) -> Html:
    note = element("div", compared.note, class_="note") if compared.note else Html()
    return element(
        "tr",
        element("td", name, note, class_="name"),
        element("td", _described(compared.old), class_="array"),
        element("td", _described(compared.new), class_="array"),
        element("td", _bar(compared)),
        _difference_cell(compared.largest),
        _agreement(compared),
    )


def _described(array: Array | None) -> str:
    if array is None:
        return "none"
    if array.value is not None:
        return _number(array.value)
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def _bar(compared: ArrayComparison) -> Html:
    if compared.largest is None:
        return Html()
    limit = compared.tolerance
    return element(
        "div",
        element("i", style=f"width: {_share(compared.largest):.1f}%"),
        element("b", style=f"left: {_share(limit):.1f}%") if limit is not None else Html(),
        class_=f"bar {_agreement_style(compared.agreement)}",
        title=None if limit is None else f"rounding limit {numbers.difference(limit)}",
    )


def _share(difference: float) -> float:
    """The place of a relative difference on a bar, in percent: logarithmic, from floor to 1."""
    if not math.isfinite(difference):
        return 100.0
    decades = math.log10(max(difference, _FLOOR) / _FLOOR)
    return min(100.0, 100 * decades / -math.log10(_FLOOR))


def _names(compared: Sequence[NamesComparison]) -> Html:
    if not compared:
        return Html()
    parts = []
    for names in compared:
        state = "the same" if names.agrees else f"not the same{names.by_whom}"
        parts.append(element("p", f"{names.what}: {len(names.both)} in both; {state}."))
        for which, only in (("old", names.only_old), ("new", names.only_new)):
            if only:
                parts.append(element("p", f"Only in the {which} run: ", *_joined(only)))
    return _section("Names", *parts)


def _judgement(report: Report) -> Html:
    tolerance = report.tolerance
    if tolerance is None and not report.notes:
        return Html()
    return _section(
        "How this was judged",
        element("p", tolerance.found) if tolerance else Html(),
        element(
            "p",
            "A difference counts as rounding up to ",
            _number(tolerance.factor),
            " times what was found, and always up to ",
            _number(tolerance.floor),
            " of the largest value. The upright mark in a bar shows where that is.",
        )
        if tolerance
        else Html(),
        *(element("p", note) for note in report.notes),
    )


def _pre(text: str) -> Html:
    return element("pre", Html("\n".join(map(together, text.splitlines()))))


def _long_table(heads: Sequence[str], rows: Sequence[Html]) -> Iterable[Html]:
    yield _table(heads, rows[:_SHOWN])
    if rest := rows[_SHOWN:]:
        yield element("details", element("summary", f"{len(rest)} more"), _table(heads, rest))


def _table(heads: Sequence[str], rows: Sequence[Html]) -> Html:
    """A table; a head that ends in # is aligned as a number."""
    styles = ("number" if text.endswith("#") else None for text in heads)
    cells = (element("th", h.rstrip("#"), class_=s) for h, s in zip(heads, styles, strict=True))
    head = element("tr", *cells)
    return element(
        "div", element("table", element("thead", head), element("tbody", *rows)), class_="wide"
    )


def _cell(value: float | None) -> Html:
    return element("td", Html() if value is None else _number(value), class_="number")


def _difference_cell(value: float | None) -> Html:
    return element("td", Html() if value is None else _difference(value), class_="number")


def _difference(value: float) -> Html:
    return element("data", numbers.difference(value), value=repr(value))


def _number(value: float) -> Html:
    return element("data", f"{value:.4g}", value=repr(value))


def _agreement(compared: ArrayComparison | CurveComparison) -> Html:
    said = compared.agreement.value + compared.by_whom
    return element("td", said, class_=_agreement_style(compared.agreement))


def _agreement_style(agreement: Agreement) -> str:
    return "agrees" if agreement.agrees else "differs"
