"""Elements of HTML that escape all text, so that no user code can be markup."""

from __future__ import annotations

import html

from tpu_estimator_compat.tools.reports.sources import printable

_WITHOUT_CONTENT = {"meta", "br"}


class Html(str):
    """Markup; any other string is text."""

    __slots__ = ()


def element(tag: str, *content: str, **attributes: str | None) -> Html:
    """An element; text in `content` and values of `attributes` are escaped.

    >>> element("p", "1 < 2", element("br"), class_="note")
    '<p class="note">1 &lt; 2<br></p>'

    In names of attributes `_` becomes `-`; a last `_`, as in `class_`, is dropped. None leaves an
    attribute out.
    """
    inside = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _WITHOUT_CONTENT:
        return Html(f"<{tag}{inside}>")
    return Html(f"<{tag}{inside}>{''.join(map(_escaped, content))}</{tag}>")


def together(*content: str) -> Html:
    """Elements and text in a row."""
    return Html("".join(map(_escaped, content)))


def _escaped(content: str) -> str:
    if isinstance(content, Html):
        return content
    return html.escape(printable(content))
