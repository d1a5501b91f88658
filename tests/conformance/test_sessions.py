"""The same scenarios on a third side: the original's loops in sessions of this TensorFlow.

What differs from the original there, too, is not looked for in this package's steps.
"""

import pytest
from support.sides import comparing

from . import setting
from .differences import DIFFER, ROWS, matches, scenarios_of, unexpected

pytestmark = [pytest.mark.slow, pytest.mark.parity, pytest.mark.usefixtures("original")]

EVERY = 6
"""Every so many scenarios are in every run, the others in the full run."""


def _is_judged(name: str) -> bool:
    """Sessions have no replicas: of a scenario that runs on one or more, they run the first."""
    return not setting.has_replicas(name) or name.endswith("-tpu")


NAMES = [
    pytest.param(
        name, marks=[pytest.mark.full] if number % EVERY or setting.in_full_run(name) else []
    )
    for number, name in enumerate(filter(_is_judged, setting.names()))
]


@pytest.mark.parametrize("of_session", NAMES)
def test_a_session_does_the_same(observed, in_sessions, of_session):
    original, _ = observed[of_session]
    found = comparing.differences(original, in_sessions[of_session])
    comparing.assert_none(unexpected(of_session, found, "sessions"))


@pytest.mark.parametrize(
    "of_row", [row for row in ROWS if not all(map(setting.is_of_strategies, scenarios_of(row)))]
)
def test_who_differs_from_the_original(observed, in_sessions, of_row):
    names = [name for name in scenarios_of(of_row) if name in in_sessions]
    originals, ours = zip(*[observed[name] for name in names], strict=True)
    found = tuple(
        any(
            matches(of_row, difference)
            for original, answer in zip(originals, answers, strict=True)
            for difference in comparing.differences(original, answer)
        )
        for answers in (ours, [in_sessions[name] for name in names])
    )
    assert found == DIFFER[ROWS[of_row]["sides"]]
