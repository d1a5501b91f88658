"""The document of a preflight: its text, its page and its JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.tools.preflight import figures, limits
from tpu_estimator_compat.tools.preflight.memory_bars import memory
from tpu_estimator_compat.tools.preflight.report import Buffer, Report, Verdict
from tpu_estimator_compat.tools.reports import document, json_form, numbers
from tpu_estimator_compat.tools.reports.document import (
    Block,
    Card,
    Cards,
    Cell,
    Document,
    Items,
    Lines,
    Medium,
    Only,
    Paragraph,
    Section,
    Span,
    Summary,
    Table,
    Tone,
)
from tpu_estimator_compat.tools.reports.sources import place

VERSION = 2
"""The JSON's version; rises when a key is removed or changes its meaning, not with new keys."""

_SIGNS = {Verdict.FITS: "\u2713", Verdict.FAILS: "\u2717"}
_HEADINGS = {
    Severity.FAILS: ("Certainly fails", Tone.BAD),
    Severity.MIGHT: ("Might fail", Tone.WARN),
}
_NAMES = 3
"""The most operations that are named together."""

_Said = TypeVar("_Said", bound=Hashable)


def shown(reports: Sequence[Report]) -> Document:
    """The reports side by side, then what they say, each statement once; the JSON has all.

    The JSON's object has `version`, `verdict`, `exit_code`, and `reports`. A report is an object
    with the fields of the dataclass `Report`, nested ones included, enums as their values; with the
    derived `verdict`, `exit_code`, `intensity`, `least_seconds` and `memory.total`; and with
    `cannot_know`, sentences on its limits.
    """
    verdict = Verdict.worst(report.verdict for report in reports)
    table = figures.table(reports)
    blocks: list[Block] = [
        Summary(figures.summary(reports)),
        Only(Medium.PAGE, [_cards(reports)]),
        Only(Medium.TERMINAL, [table]),
        *_findings(reports),
        Only(Medium.PAGE, [memory(reports)]),
        *_buffers(reports),
        Only(Medium.PAGE, [Section("Figures", [table])]),
        *_remarks("Could not tell", reports, [filter(None, [r.unknown]) for r in reports]),
        *_remarks("Notes", reports, [report.notes for report in reports]),
        *_remarks(
            "What this cannot know", reports, [limits.cannot_know(r) for r in reports], limits.ORDER
        ),
    ]
    data = {
        "version": VERSION,
        "verdict": verdict,
        "exit_code": verdict.exit_code,
        "reports": [_of_report(report) for report in reports],
    }
    return Document("Preflight", verdict, blocks, data, widest=120, usual=80)


def _of_report(report: Report) -> dict[str, Any]:
    said = json_form.encoded(report)
    if report.memory is not None:
        said["memory"]["total"] = report.memory.total
    return {
        "verdict": report.verdict,
        "exit_code": report.verdict.exit_code,
        **said,
        "intensity": report.intensity,
        "least_seconds": report.least_seconds,
        "cannot_know": limits.cannot_know(report),
    }


def _cards(reports: Sequence[Report]) -> Cards:
    cards = []
    for report in reports:
        words = f"{_SIGNS.get(report.verdict, '?')} {report.verdict_in_words}"
        verdict = Paragraph(words, report.verdict.tone)
        cards.append(Card(report.topology, [verdict, Paragraph(_in_short(report), Tone.FAINT)]))
    return Cards(cards)


def _in_short(report: Report) -> str:
    """The first figure to read: the memory, or why there is none."""
    hbm = numbers.size(report.hbm)
    if report.memory is not None:
        used = report.memory.total
        share = numbers.share(used, report.hbm)
        return f"{report.mode}: {numbers.size(used)} of {hbm}, {share}"
    too_large = any(f.kind is Kind.MEMORY and f.severity is Severity.FAILS for f in report.findings)
    said = f"more than {hbm}" if too_large else f"memory not known (of {hbm})"
    return f"{report.mode}: {said}"


def _findings(reports: Sequence[Report]) -> Iterator[Section]:
    if not any(report.findings for report in reports):
        yield Section("No findings")
    for severity, (title, tone) in _HEADINGS.items():
        if found := list(_alike(reports, severity)):
            blocks = [_finding(i, tone, *one) for i, one in enumerate(found, 1)]
            yield Section(f"{title} ({len(found)})", blocks, tone)


def _alike(reports: Sequence[Report], severity: Severity) -> Iterator[tuple[Finding, str, str]]:
    """Findings that differ by more than the node, with their operations and reports, by kind."""
    nodes: dict[Finding, dict[str, None]] = {}
    said: list[list[Finding]] = []
    for report in reports:
        said.append([])
        for finding in report.findings:
            if finding.severity is severity:
                alike = dataclasses.replace(finding, node="")
                nodes.setdefault(alike, {})[finding.node] = None
                said[-1].append(alike)
    order = list(Kind)
    for finding, where in sorted(_shared(reports, said), key=lambda of: order.index(of[0].kind)):
        yield finding, ": ".join(filter(None, [finding.op, _few(nodes[finding])])), where


def _finding(
    number: int, tone: Tone, finding: Finding, operations: str, where: str
) -> document.Finding:
    facts: list[tuple[str, str | Span]] = []
    if operations:
        facts.append(("operation", Span(operations, code=True)))
    if finding.advice:
        facts.append(("instead:", finding.advice))
    if where:
        facts.append(("on:", where))
    kind = finding.kind.value
    return document.Finding(number, kind, finding.message, tone, finding.source, facts)


def _buffers(reports: Sequence[Report]) -> Iterator[Section]:
    for report in reports:
        alike: dict[Buffer, list[str]] = {}
        for buffer in report.buffers:
            alike.setdefault(dataclasses.replace(buffer, op=""), []).append(buffer.op)
        if alike:
            rows = [_buffer(buffer, ops) for buffer, ops in alike.items()]
            yield Section(f"Largest buffers on {report.topology}", [Table(rows)])


def _buffer(buffer: Buffer, ops: Sequence[str]) -> tuple[Cell, ...]:
    """A row for buffers that differ only by their operation, as in repeated layers."""
    number = f"{len(ops)} of " if len(ops) > 1 else ""
    padding = buffer.size - buffer.unpadded
    padded = f", {numbers.size(padding)} of it padding" if padding > 0 else ""
    lines: list[Cell] = [(number, Span(buffer.shape, code=True), padded)]
    if operations := _few(dict.fromkeys(ops)):
        lines.append(Span(operations, code=True))
    if buffer.source is not None:
        lines.append((place(buffer.source), "  ", Span(buffer.source.code, code=True)))
    return numbers.size(buffer.size), Lines(lines)


def _remarks(
    title: str,
    reports: Sequence[Report],
    said: Sequence[Iterable[str]],
    order: Sequence[str] = (),
) -> Iterator[Section]:
    remarks = _shared(reports, said)
    if order:
        remarks.sort(key=lambda remark: order.index(remark[0]))
    items = [(Span(f"{w}: ", Tone.STRONG), words) if w else words for words, w in remarks]
    if items:
        yield Section(title, [Items(items)])


def _few(names: Iterable[str]) -> str:
    """Such as "a/b, a/c, a/d and 7 more"; empty without names."""
    known = list(filter(None, names))
    more = f" and {len(known) - _NAMES} more" if len(known) > _NAMES else ""
    return ", ".join(known[:_NAMES]) + more


def _shared(reports: Sequence[Report], said: Sequence[Iterable[_Said]]) -> list[tuple[_Said, str]]:
    """Each different statement once, with the topologies of its reports; none if all make it."""
    sayers: dict[_Said, dict[str, None]] = {}
    for report, things in zip(reports, said, strict=True):
        for thing in things:
            sayers.setdefault(thing, {})[report.topology] = None
    return [
        (thing, "" if len(names) == len(reports) else ", ".join(names))
        for thing, names in sayers.items()
    ]
