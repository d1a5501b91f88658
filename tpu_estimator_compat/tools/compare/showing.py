"""The document of a comparison: what its text and its page show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from tpu_estimator_compat.tools.compare.report import (
    VERSION,
    Agreement,
    Array,
    ArrayComparison,
    CurveComparison,
    FirstDifference,
    NamesComparison,
    Report,
    Side,
    Stage,
)
from tpu_estimator_compat.tools.reports import numbers
from tpu_estimator_compat.tools.reports.document import (
    Bar,
    Block,
    Card,
    Cards,
    Cell,
    Chips,
    Column,
    Curves,
    Document,
    Folded,
    Items,
    Line,
    Lines,
    Log,
    Medium,
    Only,
    Paragraph,
    Part,
    Section,
    Source,
    Span,
    Summary,
    Table,
    Tone,
)

_Comparison = TypeVar("_Comparison", ArrayComparison, CurveComparison)

_ROWS = 8
"""The most rows of a kind in the text. Of arrays, the others are counted."""
_FLOOR = 1e-9
"""Relative differences below it have no bar."""


def shown(report: Report) -> Document:
    return Document(
        "Compare",
        report.verdict,
        [
            *_in_short(report),
            Only(Medium.TERMINAL, list(_compared(report))),
            Only(Medium.PAGE, _loss(report)),
            *_failures(report),
            *_speed(report),
            Only(Medium.PAGE, list(_details(report))),
            *_judgement(report),
        ],
        {"version": VERSION, "exit_code": report.exit_code, **vars(report)},
        f"{report.old.name} against {report.new.name}",
        usual=80,
    )


def _in_short(report: Report) -> Iterator[Block]:
    first = report.first_difference
    # The first difference is told below.
    said = report.summary.removesuffix(f": {first.what}") if first else report.summary
    yield Summary(said, [report.instead] if report.instead else [])
    steps = f"{report.steps} training steps were compared." if report.steps else ""
    facts = [Paragraph(said) for said in (report.unknown, steps) if said]
    command = [Log(" ".join(report.command))] if report.command else []
    sides = Cards([_side(report.old, "old"), _side(report.new, "new")])
    yield Only(Medium.PAGE, [*facts, *command, sides])
    if first is not None:
        yield _first_difference(first)


def _side(side: Side, style: str) -> Card:
    versions = ", ".join(f"{name} {version}" for name, version in side.versions.items())
    facts = (
        Span(" ".join(side.script), code=True),
        Span(versions, Tone.FAINT),
        Span(side.folder, Tone.FAINT, code=True),
    )
    return Card(side.name, [Paragraph(fact) for fact in facts if fact.text], style)


def _first_difference(first: FirstDifference) -> Section:
    after = f" (step {first.step})" if first.step is not None else ""
    reached = list(Stage).index(first.stage)
    tones = [Tone.GOOD] * reached + [Tone.BAD] + [Tone.FAINT] * len(Stage)
    way = Chips([Span(stage.value, tone) for stage, tone in zip(Stage, tones, strict=False)])
    names = [Paragraph(_joined(first.names))] if first.names else []
    return Section(
        f"What differs first: {first.stage.value}{after}{first.by_whom}",
        [
            way,
            Paragraph(first.what),
            Only(Medium.PAGE, names),
            *([Source(first.source)] if first.source else []),
        ],
    )


def _joined(names: Iterable[str]) -> tuple[str | Span, ...]:
    parts: list[str | Span] = []
    for name in names:
        parts += [", ", Span(name, code=True)]
    return tuple(parts[1:])


def _compared(report: Report) -> Iterator[Table]:
    """One table of all values, for the text; none where nothing was compared."""
    rows = [_curve_row(curve) for curve in _worst(report.curves)]
    for kind, _, arrays in _arrays(report):
        shown = _worst(arrays)
        rows += [_array_row(kind, array) for array in shown]
        if len(arrays) > len(shown):
            left = len(arrays) - len(shown)
            differing = sum(not c.agreement.agrees for c in arrays[len(shown) :])
            said = f"{differing} different" if differing else "agree"
            rows.append((kind, f"{left} more", "", "", said))
    for names in report.names:
        found = "equal" if names.agrees else f"different{names.by_whom}"
        rows.append(("names", names.what, "", "", f"{found} ({len(names.both)} in both)"))
        for which, only in (("old", names.only_old), ("new", names.only_new)):
            rows += [("", f"  only {which}: {name}", "", "", "") for name in only[:_ROWS]]
    if rows:
        yield Table(rows, ("", "", "largest", "tolerance", ""), whole=True)


def _arrays(report: Report) -> list[tuple[str, str, Sequence[ArrayComparison]]]:
    """The arrays of each kind, with its name in the text and its title on the page."""
    return [
        ("input", "Input of the first step", report.input),
        ("first update", "Variables after the first step", report.first_update),
        ("variables", "Variables of the last checkpoint", report.variables),
        ("evaluation", "Evaluation", report.evaluations),
        ("prediction", "Predictions", report.predictions),
    ]


def _worst(compared: Sequence[_Comparison]) -> list[_Comparison]:
    """All rows if they are few; else the first few of those that differ, or of all."""
    differing = [c for c in compared if not c.agreement.agrees]
    return (differing or list(compared))[:_ROWS] if len(compared) > _ROWS else list(compared)


def _curve_row(curve: CurveComparison) -> tuple[str, ...]:
    said = curve.agreement.value
    if curve.first_step is not None:
        said += f" from step {curve.first_step} on"
    said += curve.by_whom
    tolerance = numbers.difference(max(curve.tolerance)) if curve.tolerance else ""
    kind = "loss" if curve.name == "loss" else "scalar"
    name = f"{len(curve.steps)} steps" if kind == "loss" else curve.name
    return kind, name, numbers.difference(curve.largest), tolerance, said


def _array_row(kind: str, array: ArrayComparison) -> tuple[str, ...]:
    said = array.agreement.value + array.by_whom
    if array.largest is None:
        return kind, array.name, "", "", f"{said} {array.note}".strip()
    limit = array.tolerance
    if limit is not None and array.agreement is Agreement.DIFFERENT and array.largest <= limit:
        said += " (in the mean square)"
    tolerance = "" if limit is None else numbers.difference(limit)
    return kind, array.name, numbers.difference(array.largest), tolerance, said


def _failures(report: Report) -> Iterator[Section]:
    for side in (report.old, report.new):
        if side.failure is not None:
            log = [Log(side.failure.traceback)] if side.failure.traceback else []
            yield Section(f"{side.name}: {side.failure.message}", log)


def _speed(report: Report) -> Iterator[Block]:
    """Versions and figures in the text; on the page, which has versions above, figures and bars."""
    sides = [side for side in (report.old, report.new) if side.speed is not None]
    if not sides:
        return
    packages = sorted({name for side in sides for name in side.versions})
    rows = [(name, *(side.versions.get(name, "-") for side in sides)) for name in packages]
    scripts = [side.script[0] for side in sides if side.script]
    if len(set(scripts)) > 1:
        rows.append(("script", *scripts))
    figures = [side.speed.figures() for side in sides if side.speed is not None]
    of_speed = []
    for what in dict.fromkeys(name for known in figures for name in known):
        star = " *" if what == "steps per second" else ""
        rows.append((what + star, *(known.get(what, (0, "-"))[1] for known in figures)))
        if len(figures) == 2 and all(what in known for known in figures):
            of_speed.append(_speed_row(what + star, *(known[what] for known in figures)))
    note = ("* while each step was recorded; no part of the verdict",)
    yield Only(Medium.TERMINAL, [Table(rows, ("", *(side.name for side in sides)), note)])
    if of_speed:
        numbered = [Column(head, number=True) for head in ("old", "new", "new / old")]
        heads = [Column(), *numbered, Column()]
        yield Only(Medium.PAGE, [Section("Speed", [Table(of_speed, heads, note)])])


def _speed_row(title: str, old: tuple[float, str], new: tuple[float, str]) -> tuple[Cell, ...]:
    most = max(old[0], new[0]) or 1.0
    bars = Lines([Bar([Part(old[0] / most, "old")]), Bar([Part(new[0] / most, "new")])])
    cells = (Span(text, value=value) for value, text in (old, new))
    return (title, *cells, _number(new[0] / old[0]) if old[0] else "", bars)


def _loss(report: Report) -> list[Block]:
    if report.loss is None:
        return []
    return [Section("Loss", _curve(report.loss, report.old.name, report.new.name))]


def _curve(compared: CurveComparison, old: str = "old", new: str = "new") -> list[Block]:
    """Both curves, and their relative difference below the limit of rounding."""
    lines = [
        Line(name, style, curve.steps, curve.values)
        for name, style, curve in ((old, "old", compared.old), (new, "new", compared.new))
        if curve is not None
    ]
    shown = Curves(compared.name, lines)
    if not compared.steps:
        return [shown, Paragraph("The two have no step in common.")]
    if compared.largest == 0:
        return [shown, Paragraph(f"The two are equal at each of {len(compared.steps)} steps.")]
    lines = [
        Line("rounding limit", "limit", compared.steps, compared.tolerance),
        Line("relative difference", "difference", compared.steps, compared.difference),
    ]
    first = compared.first_step
    when = "never above the rounding limit."
    if first is not None:
        when = f"above the rounding limit from step {first} on."
    return [
        shown,
        Curves(f"Relative difference of {compared.name}", lines, logarithmic=True),
        Paragraph(("Largest: ", _difference(compared.largest), f"; {when}")),
    ]


def _details(report: Report) -> Iterator[Section]:
    for _, title, arrays in _arrays(report):
        if arrays:
            rows = [_long_row(array.name, array) for array in arrays]
            yield Section(title, [Table(rows, ("Name", *_HEADS))])
    if report.first_step:
        rows = [
            _long_row(f"{c.op} ({c.type})" + (f" {c.source}" if c.source else ""), c.values)
            for c in report.first_step
        ]
        title = "Activations and gradients of the first step"
        yield Section(title, [Table(rows, ("Operation", *_HEADS))])
    if report.scalars:
        yield _scalars(report.scalars)
    if report.names:
        yield Section("Names", [said for names in report.names for said in _names(names)])


_HEADS = ("old", "new", "relative difference", Column("", number=True), "")


def _long_row(name: str, compared: ArrayComparison) -> tuple[Cell, ...]:
    noted = Lines([name, Span(compared.note, Tone.FAINT)]) if compared.note else name
    sides = _described(compared.old), _described(compared.new)
    if compared.largest is None:
        return (noted, *sides, "", "", _agreement(compared))
    bar = _bar(compared, compared.largest)
    return (noted, *sides, bar, _difference(compared.largest), _agreement(compared))


def _described(array: Array | None) -> str | Span:
    if array is None:
        return "none"
    if array.value is not None:
        return _number(array.value)
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def _bar(compared: ArrayComparison, largest: float) -> Bar:
    part = Part(_share(largest), "good" if compared.agreement.agrees else "bad")
    limit = compared.tolerance
    if limit is None:
        return Bar([part])
    return Bar([part], f"rounding limit {numbers.difference(limit)}", _share(limit))


def _share(difference: float) -> float:
    """The place of a relative difference on a bar: logarithmic, from the floor to 1."""
    if not math.isfinite(difference):
        return 1.0
    decades = math.log10(max(difference, _FLOOR) / _FLOOR)
    return min(1.0, decades / -math.log10(_FLOOR))


def _scalars(scalars: Sequence[CurveComparison]) -> Section:
    rows = [
        (
            scalar.name,
            _difference(scalar.largest) if scalar.steps else "",
            "" if scalar.first_step is None else str(scalar.first_step),
            _agreement(scalar),
        )
        for scalar in scalars
    ]
    heads = ("Scalar", Column("largest relative difference", number=True), "first step", "")
    curves = (Folded(scalar.name, _curve(scalar)) for scalar in scalars)
    return Section("Scalars of training", [Table(rows, heads), *curves])


def _names(names: NamesComparison) -> Iterator[Paragraph]:
    state = "the same" if names.agrees else f"not the same{names.by_whom}"
    yield Paragraph(f"{names.what}: {len(names.both)} in both; {state}.")
    for which, only in (("old", names.only_old), ("new", names.only_new)):
        if only:
            yield Paragraph((f"Only in the {which} run: ", *_joined(only)))


def _judgement(report: Report) -> Iterator[Section]:
    if tolerance := report.tolerance:
        factor = (
            "A difference counts as rounding up to ",
            _number(tolerance.factor),
            " times what was found, and always up to ",
            _number(tolerance.floor),
            " of the largest value. The upright mark in a bar shows where that is.",
        )
        found = Paragraph(tolerance.found)
        yield Section("What is rounding", [found, Only(Medium.PAGE, [Paragraph(factor)])])
    if report.notes:
        yield Section("Notes", [Items(report.notes)])


def _difference(value: float) -> Span:
    return Span(numbers.difference(value), value=value)


def _number(value: float) -> Span:
    return Span(f"{value:.4g}", value=value)


def _agreement(compared: ArrayComparison | CurveComparison) -> Span:
    tone = Tone.GOOD if compared.agreement.agrees else Tone.BAD
    return Span(compared.agreement.value + compared.by_whom, tone)
