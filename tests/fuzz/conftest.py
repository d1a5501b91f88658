import pathlib
from typing import Any

import pytest
from support.original import Original
from support.sharing import shared
from support.sides import running

from . import comparison

Observed = dict[str, tuple[dict[str, Any], dict[str, Any]]]
"""Observations by program: the original's, and ours."""


@pytest.fixture(scope="session")
def observed(
    request: pytest.FixtureRequest, original: Original, tmp_path_factory: pytest.TempPathFactory
) -> Observed:
    names = sorted(running.asked_for(request.session, "fuzz", "name"))
    sides = {
        "original": running.of_original(original, "fuzz", options=comparison.OPTIONS),
        "ours": running.of_ours(tmp_path_factory, "fuzz", options=comparison.OPTIONS),
    }

    def make(root: pathlib.Path) -> None:
        running.run_together(*[(side, names, root / of) for of, side in sides.items()])

    root = shared(tmp_path_factory, "fuzz", make)
    return {
        name: (running.answer(root / "original", name), running.answer(root / "ours", name))
        for name in names
    }


@pytest.fixture(scope="session")
def found_here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What this package does of the programs whose answers are kept."""
    side = running.of_ours(tmp_path_factory, "fuzz", options=comparison.OPTIONS)
    root = shared(
        tmp_path_factory, "fuzz-kept", lambda root: side.run(comparison.KEPT, root / "ours")
    )
    return {name: running.answer(root / "ours", name) for name in comparison.KEPT}
