"""Differences on purpose: rows of `expected_differences.csv`, and what is not compared at all."""

import csv
import fnmatch
import pathlib
import re

from . import setting

TABLE = pathlib.Path(__file__).with_name("expected_differences.csv")

with TABLE.open(newline="") as _file:
    ROWS = {f"{row['scenario']}-{row['difference']}": row for row in csv.DictReader(_file)}
"""Each names scenarios, differences, the reason, and the words of the guide that tell users.

`sides` says who differs from the original: "ours", "sessions" of this TensorFlow, or "both". What
TensorFlow, or a package that it needs, changed is of "sessions" where ours undoes that; "both" is
that, or of code that sessions share with ours.
"""

DIFFER = {"ours": (True, False), "sessions": (False, True), "both": (True, True)}
"""By `sides`: whether ours differs, and whether sessions do."""

LEFT_OUT = (
    # The original takes TPU code to its CPU, and says so; what of a step's loss it logs is left to
    # chance where the step updates what the loss reads. `listening` compares such lines.
    ("host_side.*", r"log: .*"),
    # In an export for TPU, the original called model_fn without the usual lines around it.
    ("listening.exporting-tpu", r"log: .INFO ((Calling|Done calling) model_fn\.|Running infer .*)"),
    # TensorFlow's own lines about a strategy; the original called model_fn once for each replica.
    (
        "reports.distribution.*",
        r"log: .INFO (Initializing RunConfig|Reduce to|Calling model_fn|Done calling).*"
        r"|log: .WARNING Partitioned variables are disabled .*"
        r"|warnings: -UserWarning (`Model.state_updates`|To make it possible to preserve) .*",
    ),
)
"""Scenarios, and patterns of differences that are none of this package's behaviour."""


def scenarios_of(row: str) -> list[str]:
    return [n for n in setting.names() if fnmatch.fnmatchcase(n, ROWS[row]["scenario"])]


def rows_of(name: str, *sides: str) -> list[str]:
    return [
        row
        for row, fields in ROWS.items()
        if fnmatch.fnmatchcase(name, fields["scenario"]) and fields["sides"] in sides
    ]


def matches(row: str, difference: str) -> bool:
    """Whether a row is about a difference: `*` in it stands for anything, `[` for itself."""
    pattern = ".*".join(map(re.escape, ROWS[row]["difference"].split("*")))
    return re.fullmatch(pattern, difference, re.DOTALL) is not None


def unexpected(name: str, differences: list[str], side: str = "ours") -> list[str]:
    """What no row tells of; `side` is "ours" or "sessions"."""
    rows = rows_of(name, side, "both")
    patterns = [pattern for names, pattern in LEFT_OUT if fnmatch.fnmatchcase(name, names)]
    return [
        each
        for each in differences
        if not any(matches(row, each) for row in rows)
        and not any(re.fullmatch(pattern, each) for pattern in patterns)
    ]
