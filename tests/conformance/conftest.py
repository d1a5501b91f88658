import dataclasses
import hashlib
import pathlib
from typing import Any

import pytest
from support.sharing import shared
from support.sides import running

from . import differences, setting

Answer = dict[str, Any]
Observed = dict[str, tuple[Answer, Answer]]
"""Observations by scenario: the judge's, and ours."""


@pytest.fixture(scope="session")
def judge(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> running.Side:
    return running.judge(request, "conformance")


def _asked_for(request: pytest.FixtureRequest, of_names: str, of_rows: str) -> set[str]:
    """Scenarios that tests have as a parameter, or need for a row of differences."""
    asked = set(running.asked_for(request.session, "conformance", of_names))
    for row in running.asked_for(request.session, "conformance", of_rows):
        of_row = differences.scenarios_of(row)
        asked.update([] if asked.intersection(of_row) else of_row)
    return asked


def _shared(
    tmp_path_factory: pytest.TempPathFactory,
    what: str,
    names: list[str],
    *sides: tuple[running.Side, list[str], str],
) -> pathlib.Path:
    key = hashlib.sha256(repr(names).encode()).hexdigest()[:8]
    return shared(
        tmp_path_factory,
        f"conformance-{what}-{key}",
        lambda root: running.run_together(*[(side, of, root / name) for side, of, name in sides]),
    )


@pytest.fixture(scope="session")
def observed(
    request: pytest.FixtureRequest, judge: running.Side, tmp_path_factory: pytest.TempPathFactory
) -> Observed:
    names = sorted(
        {*_asked_for(request, "name", "row"), *_asked_for(request, "of_session", "of_row")}
    )
    on_replicas = [name for name in names if setting.has_replicas(name)]
    ours = [name for name in names if name not in on_replicas]
    of_strategies = [name for name in names if setting.is_of_strategies(name)]
    judge_of_strategies = dataclasses.replace(judge, settings={**judge.settings, "cpus": 4})
    root = _shared(
        tmp_path_factory,
        "observed",
        names,
        (judge, [name for name in names if name not in of_strategies], "judge"),
        (judge_of_strategies, of_strategies, "judge"),
        (running.of_ours("conformance"), ours, "ours"),
        (
            running.of_ours("conformance", settings={"cpus": 4}),
            on_replicas,
            "ours",
        ),
    )
    return {
        name: (running.answer(root / "judge", name), running.answer(root / "ours", name))
        for name in names
    }


@pytest.fixture(scope="session")
def in_sessions(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Answer]:
    """Observations of sessions, by scenario."""
    names = sorted(_asked_for(request, "of_session", "of_row"))
    side = running.of_sessions("conformance")
    root = _shared(tmp_path_factory, "sessions", names, (side, names, "sessions"))
    return {name: running.answer(root / "sessions", name) for name in names}
