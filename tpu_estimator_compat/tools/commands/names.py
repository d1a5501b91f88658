"""Says whether a name of TensorFlow works here, and what to write today.

    python -m tpu_estimator_compat names tf.contrib.layers.fully_connected
    python -m tpu_estimator_compat names cross_replica

Give a name as code writes it, or a part of one: a part finds all names with it that TensorFlow
dropped. The exit status is 0 if each name works, perhaps with a difference, 1 if one does not, 2 if
a part is in no name.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tpu_estimator_compat.tools.reports.sources import say

if TYPE_CHECKING:
    from tpu_estimator_compat.old_names.legacy.table import DeadName, Table

NAME = "names"
_STYLES = {"works": "green", "differs": "yellow", "refused": "red"}
_WIDEST = 100
_ROOTS = {"tensorflow", "tensorflow_core", "tensorflow_estimator", "tf"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="a name, or a part of names")
    parser.add_argument("--json", action="store_true", help="print a JSON list, not a table")


def run(arguments: argparse.Namespace) -> int:
    from tpu_estimator_compat.old_names.legacy import table

    rows: dict[str, DeadName] = {}
    status = 0
    for asked in arguments.names:
        found = {row.name: row for row in rows_of(table.load(), asked)}
        rows |= found
        if not found and asked.partition(".")[0] in _ROOTS:
            say(f"{NAME}: {asked} does not work: {_why_not(asked)}", error=True)
            status = max(status, 1)
        elif not found:
            say(f"{NAME}: no dropped name has {asked!r} in it. Try a shorter part.", error=True)
            status = 2
    if arguments.json:
        fields = [{**vars(row), "status": row.status.value} for row in rows.values()]
        print(json.dumps(fields, indent=1))
    else:
        print("\n\n".join(map(_told, rows.values())))
    refused = any(row.status is table.Status.REFUSED for row in rows.values())
    return status or int(refused)


def rows_of(rows: Table, asked: str) -> Iterator[DeadName]:
    """The row of a full name, or the one that holds for it; for a part, all rows with it."""
    from tpu_estimator_compat.old_names.legacy import answers, table

    if asked.partition(".")[0] in _ROOTS:
        name = table.canonical(table.public(asked))
        row = rows.get(name)
        if row is None or (rows.below(name) and row.status is table.Status.REFUSED):
            row = answers.of(name)
        if row is not None:
            yield row
    else:
        yield from (row for name, row in rows.rows.items() if asked.lower() in name.lower())


def _why_not(asked: str) -> str:
    from tpu_estimator_compat.old_names.legacy import answers, table

    name = table.canonical(table.public(asked))
    close = " or ".join(answers.like(name))
    meant = f" Did you mean {close}?" if close else ""
    return f"neither today's TensorFlow nor tpu_estimator_compat has it.{meant}"


def _told(row: DeadName) -> str:
    from tpu_estimator_compat.tools.reports.terminal import Sheet, are_colors_shown, cell, grid

    sheet = Sheet(min(shutil.get_terminal_size((_WIDEST, 0)).columns, _WIDEST), are_colors_shown())
    status = cell(row.status.value, _STYLES[row.status.value])
    sheet.draw(grid([(f"{row.name}:", status)], gap=1))
    facts = {"gone since": f"TensorFlow {row.since}"} if row.since else {}
    if row.served_by:
        facts |= {"write": row.today, "served by": row.served_by.replace(":", ".")}
    if re.search(r"\b(TPU)?Estimator$", row.served_by):
        facts["leave by"] = "python -m tpu_estimator_compat to-keras SCRIPT --out model.py"
    sheet.draw(grid(("", *fact) for fact in facts.items()))
    sheet.add(row.advice, "  ", "  ")
    return str(sheet)
