"""Conformance: small legacy scripts, run live by the original and by this package, do the same.

What is compared, and how: `observing.py`, `comparing.py`. Where we differ on purpose, a row of
`expected_differences.csv` names the scenario, the difference, the reason, and the words of the
guide that tell users of it.
"""

from __future__ import annotations

import csv
import fnmatch
import pathlib
import re
from typing import Any

import pytest
from support.original import Original
from support.sharing import shared

from . import comparing, running

pytestmark = [pytest.mark.slow, pytest.mark.parity]

GUIDE = pathlib.Path(__file__).parents[2] / "migration_guide"
TABLE = pathlib.Path(__file__).with_name("expected_differences.csv")

with TABLE.open(newline="") as _file:
    EXPECTED = list(csv.DictReader(_file))


@pytest.fixture(scope="session")
def observed(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that gives the observations of a scenario: the original's, and ours.

    All scenarios run once in a session, whichever worker asks first.
    """

    def make(root: pathlib.Path) -> None:
        running.both(original.python, root, running.names())

    root = shared(tmp_path_factory, "conformance", make)
    return lambda name: running.read(root, name)


def rows_of(name: str) -> list[dict[str, str]]:
    return [row for row in EXPECTED if fnmatch.fnmatchcase(name, row["scenario"])]


def matches(row: dict[str, str], difference: str) -> bool:
    """Whether a row is about a difference: `*` in it stands for anything, `[` for itself."""
    pattern = ".*".join(map(re.escape, row["difference"].split("*")))
    return re.fullmatch(pattern, difference, re.DOTALL) is not None


@pytest.mark.parametrize("name", running.names())
def test_both_do_the_same(observed, name):
    rows = rows_of(name)
    found = comparing.differences(*observed(name))
    unexpected = [d for d in found if not any(matches(row, d) for row in rows)]
    assert not unexpected, "\n".join(unexpected)


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: f"{row['scenario']}-{row['difference']}")
def test_an_expected_difference_is_there(observed, row):
    """A row that no longer differs must go, and so must one of no scenario."""
    names = [n for n in running.names() if fnmatch.fnmatchcase(n, row["scenario"])]
    found = [d for name in names for d in comparing.differences(*observed(name))]
    assert any(matches(row, difference) for difference in found)


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: f"{row['scenario']}-{row['difference']}")
def test_the_guide_tells_of_it(row):
    page = " ".join((GUIDE / row["page"]).read_text().split())
    assert row["words"] in page
    assert row["reason"]


def test_the_original_ran_its_scenarios(observed):
    """Scenarios are about something: the original ended each, most of them without an error."""
    records = {name: observed(name)[0] for name in running.names()}
    assert len(records) >= 150
    assert not [name for name, record in records.items() if "ended" in record]
    errors = [name for name, record in records.items() if record["error"]]
    assert len(errors) < len(records) / 4
    assert all(
        r["error"] or r["result"] is not None or r["calls"] or r["files"] for r in records.values()
    )


def test_differences_are_found():
    """The comparison sees types, digits, places in lists, and what is missing."""
    same = {"a": [1, 2.0, "x 0.333333"], "b": {"c": None}}
    assert comparing.differences(same, {"a": [1, 2.000001, "x 0.3333334"], "b": {"c": None}}) == []
    assert comparing.differences({"a": 1}, {"a": 1.0}) == ["a: 1 -> 1.0"]
    assert comparing.differences({"a": 1}, {"a": True}) == ["a: 1 -> True"]
    assert comparing.differences({"a": [1, 2, 3]}, {"a": [1, 3, 4]}) == ["a: -2", "a: +4"]
    assert comparing.differences({"a": 1}, {"b": 1}) == ["a: -1", "b: +1"]
    texts = {"log": ["loss = 0.3333333"]}, {"log": ["loss = 0.333333343267"]}
    assert comparing.differences(*texts) == [
        "log: -loss = 0.3333333",
        "log: +loss = 0.333333343267",
    ]
    assert comparing.differences({"a": 1.0}, {"a": 1.0001}) == ["a: 1.0 -> 1.0001"]
    longer = {"error": {"text": "No."}}, {"error": {"text": "No. Say yes."}}
    assert comparing.differences(*longer) == []
    assert comparing.differences(*reversed(longer)) != []
    lines = [{"log": [f"loss = 0.25, step = {n} (<n> sec)"]} for n in (2, 3, 4)]
    assert comparing.differences(lines[1], lines[0]) == []  # the original read after it counted
    assert comparing.differences(lines[0], lines[1]) != []
    assert comparing.differences(lines[2], lines[0]) != []
