import json
import pathlib

import pytest
from support.sides import comparing

from . import comparison
from .programs import choices

GUIDE = pathlib.Path(__file__).parents[2] / "migration_guide"

SEEDS = range(40)
OFTEN = {*range(10), 35}
"""Seeds of every run; the full run has all."""
NAMES = [
    pytest.param(f"seed-{seed}", marks=[] if seed in OFTEN else [pytest.mark.full])
    for seed in SEEDS
]


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("name", NAMES)
def test_both_do_the_same(observed, name):
    original, ours = observed[name]
    assert "ended" not in original
    program = choices.drawn(int(name.removeprefix("seed-")))
    comparing.assert_none(comparison.unexpected(program, original, ours))


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("of_session", NAMES)
def test_a_session_does_the_same(original, observed, in_sessions, of_session):
    """The original's loops, on this TensorFlow: what differs there is not looked for in ours."""
    program = choices.drawn(int(of_session.removeprefix("seed-")))
    expected, _ = observed[of_session]
    comparing.assert_none(comparison.unexpected(program, expected, in_sessions[of_session]))


@pytest.mark.parametrize("kept", comparison.KEPT)
def test_this_package_does_what_the_original_did(found_here, kept):
    """The original's answers are in a file, which `run.py --keep` writes."""
    original = json.loads(comparison.ANSWERS.read_text())[kept]
    program = choices.drawn(int(kept.removeprefix("seed-")))
    assert original["calls"][0] == ["choices", choices.consistent(program)], "keep them anew"
    comparing.assert_none(comparison.unexpected(program, original, found_here[kept]))


@pytest.mark.parametrize("row", comparison.ROWS, ids=lambda row: row["difference"])
def test_the_guide_tells_of_it(row):
    page = " ".join((GUIDE / row["page"]).read_text().split())
    assert row["words"] in page
    assert row["reason"]


def test_programs_are_consistent():
    """What rules have changed is not changed by them again."""
    for seed in range(300):
        program = choices.consistent(choices.drawn(seed))
        assert choices.consistent(program) == program
        assert all(value in choices.TABLE[name] for name, value in program.items())


def test_all_options_are_drawn():
    programs = [choices.consistent(choices.drawn(seed)) for seed in range(2000)]
    for name, options in choices.TABLE.items():
        assert {program[name] for program in programs} == set(options), name


def test_a_difference_on_purpose_is_one_of_its_choices():
    row = {"choices": "v2=off input=numpy|dataset", "difference": "log: +INFO *"}
    program = {**choices.simplest(), "v2": "off"}
    assert comparison.matches(row, program, "log: +INFO [more]")
    assert not comparison.matches(row, program, "log: -INFO [more]")
    assert not comparison.matches(row, choices.simplest(), "log: +INFO [more]")
