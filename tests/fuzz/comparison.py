"""What differs between the sides of a drawn program, without what differs on purpose."""

import csv
import pathlib
import re
from typing import Any

from support.sides import comparing

from .programs.choices import Choices, consistent

TABLE = pathlib.Path(__file__).with_name("expected_differences.csv")
ANSWERS = pathlib.Path(__file__).with_name("answers.json")
KEPT = ("seed-0", "seed-5", "seed-22", "seed-34", "seed-57", "seed-74")
"""Programs of which the original's answers are kept, for tests without it."""

OPTIONS = {"limit": 90.0, "largest": 20}

TOLERANCES: comparing.Tolerances = (("*", comparing.Tolerance(1e-4, 2e-5)),)
"""Releases of TensorFlow add up in other orders, and steps make more of that."""

LEFT_OUT = (
    # In an export for TPU, the original called model_fn without the usual lines around it.
    ("estimator=TPUEstimator", r"log: .INFO ((Calling|Done calling) model_fn\.|Running infer .*)"),
)
"""Choices, and patterns of differences, that are none of this package's behaviour."""

with TABLE.open(newline="") as _file:
    ROWS = list(csv.DictReader(_file))
"""Each names choices, differences, the reason, and the words of the guide that tell users."""


def _has(choices: Choices, wanted: str) -> bool:
    """Whether a program has the choices; `|` is between values."""
    pairs = (each.split("=") for each in wanted.split())
    return all(choices[name] in values.split("|") for name, values in pairs)


def matches(row: dict[str, str], choices: Choices, difference: str) -> bool:
    pattern = ".*".join(map(re.escape, row["difference"].split("*")))
    told = re.fullmatch(pattern, difference, re.DOTALL) is not None
    return told and _has(choices, row["choices"])


def differ(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two runs of one side differ; neither is the expected one."""
    both = ((one, other), (other, one))
    return all(comparing.differences(*pair, TOLERANCES) for pair in both)


def unexpected(given: Choices, original: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    choices = consistent(given)
    return [
        each
        for each in comparing.differences(original, ours, TOLERANCES)
        if not any(matches(row, choices, each) for row in ROWS)
        and not any(_has(choices, of) and re.fullmatch(text, each) for of, text in LEFT_OUT)
    ]
