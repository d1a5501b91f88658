"""Elements of HTML that escape all text, so that none of the user's code can be markup."""

from __future__ import annotations

import html

from tpu_estimator_compat.preflight.rendering.sources import printable

_WITHOUT_CONTENT = {"meta", "br"}


class Html(str):
    """Markup; any other string is text."""

    __slots__ = ()


def element(tag: str, *content: str, **attributes: str) -> Html:
    """An element.

    >>> element("p", "1 < 2", element("br"), class_="note")
    '<p class="note">1 &lt; 2<br></p>'

    Args:
      tag: its name.
      *content: elements, and text that is escaped.
      **attributes: values that are escaped; `_` in names is `-`, but at the end, where it makes
        names of keywords.
    """
    names = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    inside = "".join(f' {name}="{_escaped(value)}"' for name, value in names)
    if tag in _WITHOUT_CONTENT:
        return Html(f"<{tag}{inside}>")
    return Html(f"<{tag}{inside}>{''.join(map(_escaped, content))}</{tag}>")


def together(*content: str) -> Html:
    """Elements and text after one another."""
    return Html("".join(map(_escaped, content)))


def _escaped(content: str) -> str:
    if isinstance(content, Html):
        return content
    return html.escape(printable(content))
