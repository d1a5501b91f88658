"""A document as one HTML page, in light and dark, with the style sheet and the script in it."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Iterator, Sequence

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.tools.reports import charts
from tpu_estimator_compat.tools.reports import document as doc
from tpu_estimator_compat.tools.reports.markup import Html, element, together
from tpu_estimator_compat.tools.reports.sources import place

_HERE = pathlib.Path(__file__).parent
_SHOWN = 40
"""The most rows of a table that are open; the others are folded."""
_NUMBERED = 0.03
"""The least share of a bar with room for a label."""


def page(document: doc.Document) -> str:
    """The page's text. Figures are rounded; the attribute `value` of `<data>` is exact."""
    title = document.subject or document.name
    content = _all(document.blocks, document)
    script = Html()
    if "<figure" in content:
        script = element("script", Html((_HERE / "page.js").read_text(encoding="utf-8")))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title}: {document.verdict.value}"),
        element("style", Html((_HERE / "page.css").read_text(encoding="utf-8"))),
    )
    body = element("body", element("main", element("h1", title), content), script)
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def in_a_frame(made: str, title: str) -> Html:
    """A page in a frame, so that neither its style nor that around it affects the other."""
    style = "width: 100%; height: 640px; border: 0"
    return element("iframe", srcdoc=made, title=title, sandbox="", style=style)


def _all(blocks: Iterable[doc.Block], document: doc.Document, level: int = 2) -> Html:
    return together(
        *(_block(block, document, level) for block in doc.shown(blocks, doc.Medium.PAGE))
    )


def _block(block: doc.Shown, document: doc.Document, level: int) -> Html:
    match block:
        case doc.Summary():
            return _summary(block, document)
        case doc.Paragraph():
            return element("p", _words(block.said), class_=block.tone or None)
        case doc.Items():
            return element("ul", *(element("li", _words(item)) for item in block.items))
        case doc.Source():
            return _source(block.line)
        case doc.Finding():
            return _finding(block)
        case doc.Log():
            return _preformatted(block.text)
        case doc.Table():
            return _long_table(block)
        case doc.Bar():
            return _tall(block)
        case doc.Curves():
            return charts.figure(block)
        case doc.Cards():
            cards = (_card(card, document, level) for card in block.cards)
            return element("div", *cards, class_="cards")
        case doc.Chips():
            chips = (element("li", c.text, class_=c.tone or None) for c in block.chips)
            return element("ol", *chips, class_="chips")
        case doc.Section():
            tone = None if block.tone is doc.Tone.STRONG else block.tone
            heading = element(f"h{level}", block.title, class_=tone)
            return element("section", heading, _all(block.blocks, document, level + 1))
        case doc.Folded():
            inner = _all(block.blocks, document, level)
            is_open = "open" if block.is_open else None
            return element("details", element("summary", block.title), inner, open=is_open)


def _summary(summary: doc.Summary, document: doc.Document) -> Html:
    verdict = document.verdict
    return element(
        "div",
        element("strong", verdict.value[0].upper() + verdict.value[1:]),
        element("p", summary.said),
        *(element("p", _words(more)) for more in summary.more),
        class_=f"summary edge {verdict.tone}",
    )


def _card(card: doc.Card, document: doc.Document, level: int) -> Html:
    inner = _all(card.blocks, document, level)
    return element("div", element("strong", card.title), inner, class_=f"card {card.style}".strip())


def _finding(finding: doc.Finding) -> Html:
    parts = [element("div", finding.kind, class_="faint"), element("strong", finding.message)]
    if finding.source is not None:
        parts.append(_source(finding.source))
    for label, words in finding.facts:
        said = f"{label[0].upper()}{label[1:]} "
        parts.append(element("p", element("span", said, class_="faint"), _words(words)))
    return element("article", *parts, class_=f"edge {finding.tone}")


def _source(source: SourceLine) -> Html:
    within = together(" in ", element("code", source.function)) if source.function else Html()
    where = element("p", element("code", place(source)), within)
    return together(where, _preformatted(source.code) if source.code else Html())


def _preformatted(text: str) -> Html:
    return element("pre", Html("\n".join(map(together, text.splitlines()))))


def _long_table(table: doc.Table) -> Html:
    parts = [_table(table, table.rows[:_SHOWN])]
    if rest := table.rows[_SHOWN:]:
        folded = element("summary", f"{len(rest)} more")
        parts.append(element("details", folded, _table(table, rest)))
    parts += [element("p", footnote, class_="faint") for footnote in table.footnotes]
    return together(*parts)


def _table(table: doc.Table, rows: Sequence[Sequence[doc.Cell]]) -> Html:
    columns = table.columns
    heads = (
        element("th", *_head(column), scope="col", class_="number" if column.number else None)
        for column in columns
    )
    head = element("thead", element("tr", *heads)) if columns else Html()
    body = element("tbody", *(element("tr", *_row(row, columns)) for row in rows))
    # Focusable, so that the keyboard can scroll it too.
    return element("div", element("table", head, body), class_="wide", tabindex="0")


def _head(column: doc.Column) -> list[str]:
    fill = [element("i", class_=f"fill-{column.fill}")] if column.fill else []
    return [*fill, column.head]


def _row(row: Sequence[doc.Cell], columns: Sequence[doc.Column]) -> Iterator[Html]:
    for number, cell in enumerate(row):
        tone = cell.tone if isinstance(cell, doc.Span) else ""
        if not number:
            is_part = isinstance(cell, str) and cell.startswith(" ")
            yield element("th", _cell(cell), scope="row", class_="part" if is_part else None)
        elif number < len(columns) and columns[number].number:
            yield element("td", _cell(cell), class_=f"number {tone}".strip())
        else:
            yield element("td", _cell(cell), class_=tone or None)


def _cell(cell: doc.Cell) -> Html:
    match cell:
        case doc.Lines():
            return together(*(element("div", _cell(line)) for line in cell.cells))
        case doc.Bar():
            return _bar(cell, "bar")
        case doc.Table():
            return _table(cell, cell.rows)
        case _:
            return _words(cell)


def _words(words: doc.Words) -> Html:
    if isinstance(words, tuple):
        return together(*map(_words, words))
    if isinstance(words, str):
        return together(words)
    text = together(words.text)
    if words.value is not None:
        text = element("data", text, value=repr(words.value))
    if words.code:
        text = element("code", text)
    return element("span", text, class_=words.tone) if words.tone else text


def _bar(bar: doc.Bar, style: str) -> Html:
    shapes, start = [], 0.0
    for part in bar.parts:
        label = part.label if part.share >= _NUMBERED else ""
        where = f"left: {100 * start:.4f}%; width: {100 * part.share:.4f}%"
        title = part.name or None
        shapes.append(element("i", label, class_=f"fill-{part.fill}", style=where, title=title))
        start += part.share
    if bar.mark is not None:
        side = "before" if bar.mark > 0.5 else "after"
        limit = element("span", bar.limit, class_=side) if bar.limit else Html()
        shapes.append(element("b", limit, style=f"left: {100 * bar.mark:.4f}%"))
    return element(
        "div", *shapes, class_=style, role="img", aria_label=bar.said, title=bar.said or None
    )


def _tall(bar: doc.Bar) -> Html:
    legend = (
        element("li", element("i", class_=f"fill-{fill}"), _words(words))
        for fill, words in bar.legend
    )
    caption = element("div", bar.caption, class_="caption")
    return together(caption, _bar(bar, "tall bar"), element("ul", *legend, class_="legend"))
