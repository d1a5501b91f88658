"""Conformance: small legacy scripts, run live by the original and by this package, do the same.

Where the original cannot be had, its loops in sessions of this TensorFlow take its place. What is
compared, and how: `support.sides`. What differs on purpose: `differences`.
"""

import pathlib

import pytest
from support.sides import comparing

from . import setting
from .differences import ROWS, matches, rows_of, scenarios_of, unexpected

pytestmark = [pytest.mark.slow, pytest.mark.parity]

GUIDE = pathlib.Path(__file__).parents[2] / "migration_guide"

NAMES = [
    pytest.param(name, marks=[pytest.mark.full] if setting.in_full_run(name) else [])
    for name in setting.names()
]
DIFFERENCES = [
    pytest.param(
        row, marks=[pytest.mark.full] if all(map(setting.in_full_run, scenarios_of(row))) else []
    )
    for row, fields in ROWS.items()
    if fields["sides"] != "sessions"
]


@pytest.mark.parametrize("name", NAMES)
def test_both_do_the_same(observed, judge, name):
    if judge.name != "original" and rows_of(name, "sessions"):
        pytest.skip("sessions of this TensorFlow do not as the original did: no judge")
    original, ours = observed[name]
    assert "ended" not in original
    about = [original[kind] for kind in ("error", "result", "calls", "files")]
    assert about != [None, None, [], []], "the scenario is about nothing"
    comparing.assert_none(unexpected(name, comparing.differences(original, ours)))


@pytest.mark.parametrize("row", DIFFERENCES)
def test_an_expected_difference_is_there(observed, judge, row):
    if judge.name != "original" and ROWS[row]["sides"] == "both":
        pytest.skip("sessions do as ours")
    about = [observed[name] for name in scenarios_of(row) if name in observed]
    found = [difference for sides in about for difference in comparing.differences(*sides)]
    assert any(matches(row, difference) for difference in found)


@pytest.mark.parametrize("difference", [each for each in ROWS if ROWS[each]["page"]])
def test_the_guide_tells_of_it(difference):
    page = " ".join((GUIDE / ROWS[difference]["page"]).read_text().split())
    assert ROWS[difference]["words"] in page


def test_each_difference_has_a_reason():
    assert all(row["reason"] for row in ROWS.values())
    assert all(row["page"] or row["sides"] == "sessions" for row in ROWS.values())


def test_most_scenarios_end_without_an_error(observed):
    errors = [name for name, (original, _) in observed.items() if original["error"]]
    assert len(errors) <= len(observed) / 4
    assert len(setting.names()) >= 150
