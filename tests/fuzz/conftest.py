import pathlib
from typing import Any

import pytest
from support.sharing import shared
from support.sides import running

from . import comparison

Answer = dict[str, Any]
Observed = dict[str, tuple[Answer, Answer]]
"""Observations by program: the judge's, and ours."""


@pytest.fixture(scope="session")
def observed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    of_session = running.asked_for(request.session, "fuzz", "of_session")
    names = sorted({*running.asked_for(request.session, "fuzz", "name"), *of_session})
    options = {"options": comparison.OPTIONS}
    judge = running.judge(request, "fuzz", **options)
    ours = running.of_ours("fuzz", **options)

    def make(root: pathlib.Path) -> None:
        running.run_together((judge, names, root / "judge"), (ours, names, root / "ours"))

    root = shared(tmp_path_factory, "fuzz", make)
    return {
        name: (running.answer(root / "judge", name), running.answer(root / "ours", name))
        for name in names
    }


@pytest.fixture(scope="session")
def in_sessions(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Answer]:
    """What sessions of this TensorFlow do, by program."""
    names = sorted(running.asked_for(request.session, "fuzz", "of_session"))
    side = running.of_sessions("fuzz", options=comparison.OPTIONS)
    root = shared(tmp_path_factory, "fuzz-sessions", lambda root: side.run(names, root))
    return {name: running.answer(root, name) for name in names}


@pytest.fixture(scope="session")
def found_here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """What this package does of the programs whose answers are kept."""
    side = running.of_ours("fuzz", options=comparison.OPTIONS)
    root = shared(
        tmp_path_factory, "fuzz-kept", lambda root: side.run(comparison.KEPT, root / "ours")
    )
    return {name: running.answer(root / "ours", name) for name in comparison.KEPT}
