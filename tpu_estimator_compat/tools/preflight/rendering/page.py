"""The reports as one self-contained HTML page: no files, no network, no scripts."""

from __future__ import annotations

from collections.abc import Sequence

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.engine.jax.lowering.findings import Kind, Severity
from tpu_estimator_compat.tools.preflight.rendering import bars, comparison, groups
from tpu_estimator_compat.tools.preflight.rendering.memory_section import memory_section
from tpu_estimator_compat.tools.preflight.rendering.style import CSS
from tpu_estimator_compat.tools.preflight.report import Report, Verdict
from tpu_estimator_compat.tools.reports import numbers
from tpu_estimator_compat.tools.reports.markup import Html, document, element, together
from tpu_estimator_compat.tools.reports.sources import place

_SIGNS = {Verdict.FITS: "\u2713", Verdict.FAILS: "\u2717"}
_CLASSES = {Verdict.FITS: "fits", Verdict.FAILS: "fails"}


def to_html(reports: Sequence[Report]) -> str:
    """A whole document in UTF-8, to be written to a file as it is."""
    verdict = Verdict.worst([report.verdict for report in reports])
    title = f"Preflight: {verdict.value}"
    body = element("body", bars.patterns(), element("main", *_sections(reports, title)))
    return document(title, CSS, body)


def in_a_frame(page: str) -> Html:
    """The page in a frame, so that neither page's style affects the other."""
    return element(
        "iframe",
        srcdoc=page,
        title="Preflight",
        sandbox="",
        style="width: 100%; height: 640px; border: 0",
    )


def _sections(reports: Sequence[Report], title: str) -> list[Html]:
    return [
        _header(reports, title),
        _remarks("Could not tell", groups.unknowns(reports)),
        *(_findings(reports, severity) for severity in groups.HEADINGS),
        memory_section(reports),
        _buffers(reports),
        _figures(reports),
        _remarks("Notes", groups.notes(reports)),
        _remarks("What this cannot know", groups.cannot_know(reports)),
    ]


def _header(reports: Sequence[Report], title: str) -> Html:
    cards = [
        element(
            "li",
            element("strong", label),
            element(
                "span",
                f"{_SIGNS.get(report.verdict, '?')} {report.verdict_in_words}",
                class_="verdict",
            ),
            element("br"),
            element("span", _in_short(report), class_="soft"),
            class_=f"card {_CLASSES.get(report.verdict, 'unknown')}",
        )
        for label, report in zip(comparison.labels(reports), reports, strict=True)
    ]
    return element(
        "header",
        element("h1", title),
        element("p", comparison.summary(reports)) if len(reports) > 1 else Html(),
        element("ul", *cards, class_="cards"),
    )


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


def _findings(reports: Sequence[Report], severity: Severity) -> Html:
    found = groups.findings(reports, severity)
    if not found:
        return Html()
    heading = element("h2", f"{groups.HEADINGS[severity]} ({len(found)})", class_=severity.value)
    return element("section", heading, *(_finding(group) for group in found))


def _finding(group: groups.FindingGroup) -> Html:
    finding = group.finding
    parts = [element("div", finding.kind.value, class_="kind"), element("h3", finding.message)]
    if finding.source is not None:
        parts.append(_source(finding.source))
    if group.operations:
        parts.append(element("p", "Operation ", element("code", group.operations), class_="soft"))
    if finding.advice:
        parts.append(element("p", element("strong", "Instead: "), finding.advice))
    if group.where:
        parts.append(element("p", f"On {group.where}", class_="soft"))
    return element("article", *parts, class_=f"finding {finding.severity.value}")


def _source(source: SourceLine) -> Html:
    where = element("code", place(source))
    within = together(" in ", element("code", source.function)) if source.function else Html()
    code = element("pre", element("code", source.code)) if source.code else Html()
    return together(element("p", where, within), code)


def _buffers(reports: Sequence[Report]) -> Html:
    tables = []
    for label, report in zip(comparison.labels(reports), reports, strict=True):
        if report.buffers:
            rows = [_buffer(group) for group in groups.buffers(report)]
            header = element("tr", *_headers("Size", "Padding", "Shape", "Operation and line"))
            tables.append(element("h3", f"On {label}"))
            tables.append(_table(header, rows))
    if not tables:
        return Html()
    return element("section", element("h2", "Largest buffers"), *tables)


def _buffer(group: groups.BufferGroup) -> Html:
    buffer = group.buffer
    padding = max(0, buffer.size - buffer.unpadded)
    number = f"{group.number} \u00d7 " if group.number > 1 else ""
    origin = [element("div", element("code", group.operations))] if group.operations else []
    if buffer.source is not None:
        origin.append(element("div", place(buffer.source), class_="soft code"))
        origin.append(element("div", element("code", buffer.source.code)))
    return element(
        "tr",
        element("td", f"{number}{numbers.size(buffer.size)}", class_="number-cell"),
        element("td", numbers.size(padding) if padding else "none", class_="number-cell"),
        element("td", element("code", buffer.shape)),
        element("td", *(origin or [Html("not known")])),
    )


def _figures(reports: Sequence[Report]) -> Html:
    rows = comparison.rows(reports)
    header = element("tr", element("td"), *_headers(*comparison.labels(reports)))
    remarks = [comparison.footnote(rows), comparison.compiled_as(reports)]
    return element(
        "section",
        element("h2", "Figures"),
        _table(header, [_row(row) for row in rows]),
        *(element("p", remark, class_="soft") for remark in remarks if remark),
    )


def _row(row: comparison.Row) -> Html:
    style = "part" if row.name.startswith(" ") else "whole"
    return element(
        "tr",
        element("th", row.name.strip(), scope="row", class_=style),
        *(element("td", cell or "\u2013") for cell in row.cells),
    )


def _headers(*names: str) -> list[Html]:
    return [element("th", name, scope="col") for name in names]


def _table(header: Html, rows: Sequence[Html]) -> Html:
    made = element("table", element("thead", header), element("tbody", *rows))
    # Focusable, so that the keyboard can scroll it too.
    return element("div", made, class_="scroll", tabindex="0")


def _remarks(title: str, remarks: Sequence[groups.Shared[str]]) -> Html:
    if not remarks:
        return Html()
    items = [
        element("li", element("strong", f"{r.where}: ") if r.where else Html(), r.said)
        for r in remarks
    ]
    return element("section", element("h2", title), element("ul", *items))
