import hashlib
import pathlib
from typing import Any

import pytest
from support.original import Original
from support.sharing import shared
from support.sides import running

from . import differences, setting

Observed = dict[str, tuple[dict[str, Any], dict[str, Any]]]
"""Observations by scenario: the original's, and ours."""


@pytest.fixture(scope="session")
def observed(
    request: pytest.FixtureRequest, original: Original, tmp_path_factory: pytest.TempPathFactory
) -> Observed:
    asked = set(running.asked_for(request.session, "conformance", "name"))
    for row in running.asked_for(request.session, "conformance", "row"):
        of_row = differences.scenarios_of(row)
        asked.update([] if asked.intersection(of_row) else of_row)
    names = sorted(asked)
    on_replicas = [name for name in names if setting.has_replicas(name)]
    ours = [name for name in names if name not in on_replicas]

    def make(root: pathlib.Path) -> None:
        running.run_together(
            (running.of_original(original, "conformance"), names, root / "original"),
            (running.of_ours(tmp_path_factory, "conformance"), ours, root / "ours"),
            (
                running.of_ours(tmp_path_factory, "conformance", settings={"cpus": 4}),
                on_replicas,
                root / "ours",
            ),
        )

    key = hashlib.sha256(repr(names).encode()).hexdigest()[:8]
    root = shared(tmp_path_factory, f"conformance-{key}", make)
    return {
        name: (running.answer(root / "original", name), running.answer(root / "ours", name))
        for name in names
    }
