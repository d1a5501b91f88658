"""The table that `summary()` of an estimator's Keras model prints: its variables by scope."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

_NONE = (
    "It has no variables yet. Make it with keras_model(input_fn), or let it see data first, by "
    "predict or fit."
)
_HEADINGS = ("Variable", "Shape", "Params")


def as_text(
    name: str, variables: Sequence[Any], *, width: int | None = None, show_trainable: bool = False
) -> str:
    """A table of variables.

    Args:
      name: the model's.
      variables: have `path` (`scope/of/it/kernel`), `shape` and `trainable`.
      width: least number of characters of a line; None for as many as are needed.
      show_trainable: whether a fourth column says if a variable is trained.

    Returns:
      Lines: for every scope how many numbers there are in it, and below it its variables with their
      shapes; those that are not trained come after those that are. The sums stand at the end.
    """
    trained = [v for v in variables if v.trainable]
    others = [v for v in variables if not v.trainable]
    rows = [*_scopes(trained), *_scopes(others)]
    headings = [*_HEADINGS, *(["Trainable"] if show_trainable else [])]
    cells = [row if show_trainable else row[:3] for row in rows]
    widths = [max(len(row[i]) for row in [headings, *cells]) for i in range(len(headings))]
    widths[0] += max(0, (width or 0) - sum(widths) - 2 * (len(widths) - 1))
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    lines = [f'Model: "{name}"', rule, _line(headings, widths), rule]
    lines += [_line(row, widths) for row in cells] if rows else [_NONE]
    sums = {"Total": variables, "Trainable": trained, "Non-trainable": others}
    lines += [rule, *(f"{word} params: {_total(which):,}" for word, which in sums.items())]
    return "\n".join(lines)


def _scopes(variables: Sequence[Any]) -> Iterable[tuple[str, str, str, str]]:
    """Rows: those of each scope under one of its own, scopes in order of first variables."""
    scopes: dict[str, list[Any]] = {}
    for variable in variables:
        scopes.setdefault(variable.path.rpartition("/")[0], []).append(variable)
    for scope, members in scopes.items():
        if scope:
            yield f"{scope}/", "", f"{_total(members):,}", ""
        for variable in members:
            name = variable.path.rpartition("/")[2]
            trained = "yes" if variable.trainable else "no"
            indent = "  " if scope else ""
            yield indent + name, str(tuple(variable.shape)), f"{_total([variable]):,}", trained


def _total(variables: Iterable[Any]) -> int:
    return sum(math.prod(variable.shape) for variable in variables)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    aligned = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    aligned[2] = cells[2].rjust(widths[2])
    return "  ".join(aligned).rstrip()
