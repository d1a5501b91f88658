"""Notebook files from the sources of their cells."""

import json
import textwrap
from collections.abc import Sequence


def notebook(*cells: str, text: Sequence[int] = (), indent: int | None = 1) -> str:
    """The text of a notebook.

    Args:
      *cells: their sources, dedented.
      text: numbers, from 1, of cells that are markdown.
      indent: of the JSON.
    """
    made = [
        {"cell_type": "markdown", "metadata": {}, "source": _lines(cell)}
        if number in text
        else {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": _lines(cell),
        }
        for number, cell in enumerate(cells, 1)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": made,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    return json.dumps(content, indent=indent, ensure_ascii=False) + "\n"


def _lines(cell: str) -> list[str]:
    return textwrap.dedent(cell).strip("\n").splitlines(keepends=True)
