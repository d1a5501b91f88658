"""The table that `summary()` of an estimator's Keras model prints: its variables by scope."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich.box import Box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_NONE = (
    "It has no variables yet. Make it with keras_model(input_fn), or let it see data first, by "
    "predict or fit."
)
_RULES = Box("----\n    \n----\n    \n    \n    \n    \n----\n", ascii=True)
_UNLIMITED = 10_000


def as_text(
    name: str, variables: Sequence[Any], *, width: int | None = None, show_trainable: bool = False
) -> str:
    """A table of variables, which have `path`, `shape` and `trainable`.

    A row per scope gives its number of values; rows of its variables follow. Trainable variables
    come first. The last lines are sums.
    """
    trained = [v for v in variables if v.trainable]
    others = [v for v in variables if not v.trainable]
    table = Table(box=_RULES, min_width=width and width + 2, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("Variable", ratio=1)
    table.add_column("Shape")
    table.add_column("Params", justify="right")
    if show_trainable:
        table.add_column("Trainable")
    for row in [*_scopes(trained), *_scopes(others)]:
        table.add_row(*map(Text, row[: len(table.columns)]))
    sums = {"Total": variables, "Trainable": trained, "Non-trainable": others}
    told = [f"{word} params: {_total(which):,}" for word, which in sums.items()]
    return "\n".join([f'Model: "{name}"', *_drawn(table), *([] if variables else [_NONE]), *told])


def _drawn(table: Table) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=_UNLIMITED, color_system=None, force_jupyter=False).print(table)
    return [line[1:-1].rstrip() for line in file.getvalue().splitlines()]  # cuts off the borders


def _scopes(variables: Sequence[Any]) -> Iterable[tuple[str, str, str, str]]:
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
