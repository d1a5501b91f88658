"""Parity of the host's side: effects of host calls, summary writers, ends, sessions' first values.

What the original does with TPU code on a CPU, ours does there too, and with `use_tpu=True`.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.original import Original

from . import host_side, sides

pytestmark = [pytest.mark.slow, pytest.mark.parity]


@pytest.fixture(scope="session")
def records(
    original: Original, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The records of the original and of this package."""
    return sides.both(original.python, "host_side", tmp_path_factory)


@pytest.mark.parametrize("name", host_side.SCENARIOS)
def test_the_same_happens_on_both_sides(records, name):
    original, ours = (dict(side[name]) for side in records)
    for record in (original, ours):
        assert record.pop("error") is None
        del record["log"]  # `scenarios` compares it
    assert ours == original


def test_the_scenarios_are_about_something(records):
    original, _ = records
    names = {name for name, _ in original["effects"]["result"][0]}
    assert names == {
        *("even", "odd", "after", "nil", "one", "after loop", "op", "inner", "small"),
        *("not nested", "is 1", "not 1", "first", "second"),
    }
    for mode in ("train", "eval", "infer"):
        for name in ("summaries", "summaries_opened_by_the_model"):
            assert original[name]["events"][mode]
    assert original["summaries_of_a_failed_training"]["result"] == "failed"


def test_a_global_step_that_stays_is_told(records):
    """TensorFlow says so five times in a process."""
    told = [
        [line for line in side["global_step_stays"]["log"] if "has not been increased" in line]
        for side in records
    ]
    assert set(told[0]) == set(told[1])
    # A read of the original may meet the step of the run before, in another scenario.
    assert len(told[1]) == 5
