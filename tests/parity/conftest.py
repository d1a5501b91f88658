import functools
import pathlib
from collections.abc import Callable

import pytest
from support.original import Original
from support.sharing import shared
from support.sides import running

from .runs import FIRST, OPTIONS, doing


@pytest.fixture(scope="session")
def asked(request: pytest.FixtureRequest) -> list[str]:
    """The families that the selected tests are about; a case is one with a number of replicas."""
    cases = running.asked_for(request.session, "parity", "case")
    families = running.asked_for(request.session, "parity", "family")
    return sorted({*families, *(case.rpartition("-")[0] for case in cases)})


@pytest.fixture(scope="session")
def theirs(original: Original) -> running.Side:
    return running.of_original(original, "parity", options=OPTIONS)


@pytest.fixture(scope="session")
def ours() -> Callable[..., running.Side]:
    return functools.partial(running.of_ours, "parity", options=OPTIONS)


@pytest.fixture(scope="session")
def starts(
    asked: list[str], theirs: running.Side, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    """What the original has left of a short training of each family."""
    runs = {family: {"family": family, "train_steps": FIRST} for family in asked}
    return shared(
        tmp_path_factory, "starts", lambda out: running.run_together(doing(theirs, runs, out))
    )
