"""Reads what a preflight shows: pages, and the text of any way to show reports."""

import html.parser
import json
from collections.abc import Iterator, Sequence
from typing import Any

from tpu_estimator_compat.tools.preflight.estimator_mode import Preflight
from tpu_estimator_compat.tools.preflight.report import Report


class Elements(html.parser.HTMLParser):
    """The elements and the text of a page; fails where tags do not balance."""

    def __init__(self, page: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" not in self._open:
            self.text += data


def page(*reports: Report) -> Elements:
    return Elements(Preflight(list(reports)).to_html())


def plain(text: str) -> str:
    """Text with one space in place of each line break and indentation."""
    return " ".join(text.split())


def text_of_table(reports: Sequence[Report]) -> str:
    return plain(str(Preflight(list(reports))))


def text_of_json(reports: Sequence[Report]) -> str:
    return plain(" ".join(_strings(json.loads(Preflight(list(reports)).to_json()))))


def text_of_page(reports: Sequence[Report]) -> str:
    seen = page(*reports)
    labels = [attributes.get("aria-label", "") for _, attributes in seen.elements]
    return plain(" ".join([seen.text, *labels]))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    else:
        yield str(value)
