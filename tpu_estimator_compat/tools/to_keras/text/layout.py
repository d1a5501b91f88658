"""Lays lines of code out within 100 columns as a formatter would."""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 100
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_OPEN, _CLOSE = "([{", ")]}"
_OPERATORS = ((" or ",), (" and ",), (" + ", " - "), (" * ", " / "))


def lay_out(lines: list[str]) -> list[str]:
    """Breaks those lines that are too long; each begins with its indentation."""
    return [part for line in lines for part in _broken(line)]


def _broken(line: str, indent: str = "", comma: str = "") -> list[str]:
    """A line, broken within the last brackets that hold something if it is too long."""
    text = line.strip()
    indent = indent or line[: len(line) - len(text)]
    if len(indent + text + comma) <= WIDTH:
        return [indent + text + comma if text else ""]
    head = re.match(r"(?:return |[\w.\[\], ]+ = |\w+=|\"\w+\": |yield )?", text)
    start = head.end() if head else 0
    parts = (", ", *(sign for signs in _OPERATORS for sign in signs))
    if any(i > start for i in _top_level(text, parts)) and not re.match(r"(def|lambda|for) ", text):
        text = f"{text[:start]}({text[start:]})"
    edges = [i for i, depth in _depths(text) if depth == 0 and text[i] in _OPEN + _CLOSE]
    groups = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=False) if b - a > 1]
    if not groups:
        return [indent + text + comma]
    first, last = max(groups, key=lambda each: (each[1] - each[0] > len(text) / 3, each[1]))
    body, inner = text[first + 1 : last], indent + "    "
    around = [indent + text[: first + 1], indent + text[last:] + comma]
    if len(inner + body) <= WIDTH:
        return [around[0], inner + body, around[1]]
    loops = list(_top_level(body, (" for ", " if "))) if " for " in body else []
    commas = list(_top_level(body, (", ",)))
    operators = (list(_top_level(body, signs)) for signs in _OPERATORS)
    cuts = loops or commas or next(filter(None, operators), [])
    ranges = zip([0, *cuts], [*cuts, len(body)], strict=True)
    pieces = [piece for a, b in ranges if (piece := body[a:b].strip(", "))]
    one = body.endswith(",")  # a tuple of one
    end = "" if loops or not (commas or one) or body.startswith("*") else ","
    return [around[0], *(x for p in pieces for x in _broken(p, inner, end)), around[1]]


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """Each position outside of strings with its depth of brackets."""
    inside = {i for m in _STRING.finditer(text) for i in range(m.start(), m.end())}
    depth = 0
    for i, letter in enumerate(text):
        if i not in inside:
            depth -= letter in _CLOSE
            yield i, depth
            depth += letter in _OPEN


def _top_level(text: str, signs: tuple[str, ...]) -> Iterator[int]:
    return (i for i, depth in _depths(text) if depth == 0 and text.startswith(signs, i))
