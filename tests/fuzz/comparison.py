"""What differs between the sides of a drawn program, without what differs on purpose."""

from __future__ import annotations

import csv
import pathlib
import re
from typing import Any

from support.sides import comparing

from .programs.choices import Choices, consistent

TABLE = pathlib.Path(__file__).with_name("expected_differences.csv")
OPTIONS = {"limit": 90.0, "largest": 20}

TOLERANCES: comparing.Tolerances = (("*", comparing.Tolerance(1e-4, 2e-5)),)
"""Releases of TensorFlow add up in other orders, and steps make more of that."""

with TABLE.open(newline="") as _file:
    ROWS = list(csv.DictReader(_file))
"""Each names choices, differences, the reason, and the words of the guide that tell users."""


def matches(row: dict[str, str], choices: Choices, difference: str) -> bool:
    """Whether a row is about a difference of a program: `*` in it stands for anything."""
    wanted = dict(each.split("=") for each in row["choices"].split())
    if any(choices[name] not in value.split("|") for name, value in wanted.items()):
        return False
    pattern = ".*".join(map(re.escape, row["difference"].split("*")))
    return re.fullmatch(pattern, difference, re.DOTALL) is not None


def unexpected(given: Choices, original: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Differences of a program that are not on purpose."""
    choices = consistent(given)
    return [
        each
        for each in comparing.differences(original, ours, TOLERANCES)
        if not any(matches(row, choices, each) for row in ROWS)
    ]
