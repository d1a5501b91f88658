"""Benchmarks as tests: a few short rounds, and only ratios with generous margins.

The margins are far from the targets of `report.TARGETS`, so that a busy machine does not fail them;
they catch a loop that returns to Python every step, a leak, or a second copy of the variables.
"""

from __future__ import annotations

import statistics

import pytest

from benchmarks import large_model, measures, report

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def plan(original) -> measures.Plan:
    return measures.Plan(original.python, rounds=5, variants=("bare", "original", "ours"))


def median_ratio(samples: measures.Samples, other: str) -> float:
    value = report.ratio(samples, "ours", other)
    assert value is not None
    return value


def test_small_steps_cost_less_than_the_originals(plan):
    found = measures.steps(plan, "small")["steps"]
    # Medians between 1.3 and 2 were seen on two busy cores: 1.5 would fail there by chance.
    assert median_ratio(found, "original") > 1.0, found
    assert median_ratio(found, "bare") > 0.5, found


def test_training_neither_slows_nor_grows(plan):
    found = measures.growth(plan, "small", blocks=4, block=10000)
    resident = found["resident"]
    assert resident[-1] - resident[0] < 4 * 2**20, found
    assert found["rate"][-1] > 0.6 * statistics.median(found["rate"][:-1]), found


def test_a_large_model_is_not_held_twice():
    # A quarter of the size that the command takes, so that what Python and TensorFlow take
    # themselves would weigh too much: it is left out.
    found = large_model.run(gib=0.5)
    assert (found["peak"] - found["baseline"]) / found["state"] < 1.3, found


def test_exports_take_no_more_time_and_room_than_the_originals(plan):
    found = measures.exports(plan, "encoder")
    # Ratios of 1.0 were seen, of both.
    assert median_ratio(found["export"], "original") < 2.0, found
    assert median_ratio(found["export_size"], "original") < 1.2, found
