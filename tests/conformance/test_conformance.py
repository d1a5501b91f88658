"""Conformance: small legacy scripts, run live by the original and by this package, do the same.

What is compared, and how: `support.sides`. What differs on purpose: `differences`.
"""

from __future__ import annotations

import pathlib

import pytest
from support.sides import comparing

from . import setting
from .differences import ROWS, matches, scenarios_of, unexpected

pytestmark = [pytest.mark.slow, pytest.mark.parity]

GUIDE = pathlib.Path(__file__).parents[2] / "migration_guide"


@pytest.mark.parametrize("name", setting.names())
def test_both_do_the_same(observed, name):
    original, ours = observed[name]
    assert "ended" not in original
    about = [original[kind] for kind in ("error", "result", "calls", "files")]
    assert about != [None, None, [], []], "the scenario is about nothing"
    comparing.assert_none(unexpected(name, comparing.differences(original, ours)))


@pytest.mark.parametrize("row", ROWS)
def test_an_expected_difference_is_there(observed, row):
    """A row that no longer differs must go, and so must one of no scenario."""
    found = [d for n in scenarios_of(row) for d in comparing.differences(*observed[n])]
    assert any(matches(row, difference) for difference in found)


@pytest.mark.parametrize("row", ROWS)
def test_the_guide_tells_of_it(row):
    page = " ".join((GUIDE / ROWS[row]["page"]).read_text().split())
    assert ROWS[row]["words"] in page
    assert ROWS[row]["reason"]


def test_most_scenarios_end_without_an_error(observed):
    errors = [name for name, (original, _) in observed.items() if original["error"]]
    assert len(errors) <= len(observed) / 4
    assert len(setting.names()) >= 150
