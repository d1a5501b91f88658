"""Says what became of a name that TensorFlow dropped: status, replacement, difference.

    python -m tpu_estimator_compat names tf.contrib.layers.fully_connected
    python -m tpu_estimator_compat names cross_replica

A name is looked up as code writes it; a part of a name finds all names with that part. The exit
status is 0 if each name works, perhaps with a difference, 1 if one is refused, 2 if one is in no
table: TensorFlow still has it, or never had it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tpu_estimator_compat.tools.reports.sources import say

if TYPE_CHECKING:
    from tpu_estimator_compat.old_names.legacy.table import DeadName, Table

NAME = "names"
_STYLES = {"works": "green", "differs": "yellow", "refused": "red"}
_WIDEST = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="a name, or a part of names")
    parser.add_argument("--json", action="store_true", help="print a JSON list of rows")


def run(arguments: argparse.Namespace) -> int:
    from tpu_estimator_compat.old_names.legacy import table

    rows: dict[str, DeadName] = {}
    status = 0
    for asked in arguments.names:
        found = {row.name: row for row in _rows(table.load(), asked)}
        rows |= found
        if not found:
            say(f"{NAME}: no row for {asked!r}. Try a part of the name.", error=True)
            status = 2
    if arguments.json:
        fields = [{**vars(row), "status": row.status.value} for row in rows.values()]
        print(json.dumps(fields, indent=1))
    else:
        print("\n\n".join(map(_told, rows.values())))
    refused = any(row.status is table.Status.REFUSED for row in rows.values())
    return status or int(refused)


def _rows(rows: Table, asked: str) -> Iterator[DeadName]:
    """The row of a name, or of the module around it; else the rows whose names contain it."""
    from tpu_estimator_compat.old_names.legacy import table

    if row := rows.covering(table.canonical(table.public(asked))):
        yield row
    else:
        yield from (row for name, row in rows.rows.items() if asked.lower() in name.lower())


def _as_json(row: DeadName) -> dict[str, str]:
    return {**dataclasses.asdict(row), "status": row.status.value}


def _told(row: DeadName) -> str:
    from tpu_estimator_compat.tools.reports.terminal import Sheet, are_colors_shown, cell, grid

    sheet = Sheet(min(shutil.get_terminal_size((_WIDEST, 0)).columns, _WIDEST), are_colors_shown())
    status = cell(row.status.value, _STYLES[row.status.value])
    sheet.draw(grid([(f"{row.name}:", status)], gap=1))
    facts = {"gone since": f"TensorFlow {row.since}"}
    if row.served_by:
        facts |= {"write": row.today, "served by": row.served_by.replace(":", ".")}
    sheet.draw(grid(("", *fact) for fact in facts.items()))
    sheet.add(row.advice, "  ", "  ")
    return str(sheet)
