"""Words that a text does not contain, to stand for other text during a rewrite."""

from __future__ import annotations

import itertools


def unused(stem: str, text: str) -> str:
    """`stem`, or `stem` with the first number, that does not occur in a text.

    >>> unused("#_cell_", "x = 1  #_cell_")
    '#_cell_0'
    """
    words = itertools.chain([stem], (f"{stem}{number}" for number in itertools.count()))
    return next(word for word in words if word not in text)
