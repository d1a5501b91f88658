"""Parity environment: an interpreter that has the original, made once and kept between runs.

`original` is a pytest fixture, visible to every test. The environment is the one that the command
`compare` makes for its users. Set TPU_ESTIMATOR_COMPAT_ORIGINAL_PYTHON to an interpreter that has
the original to use that one instead.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
from typing import Any

import pytest

from support import probing
from support.forks import PLAIN_KERNELS, Forks
from support.sharing import shared
from tpu_estimator_compat.tools.compare import environment

OVERRIDE = "TPU_ESTIMATOR_COMPAT_ORIGINAL_PYTHON"


@dataclasses.dataclass(frozen=True)
class Original:
    python: str
    forks: Forks
    tmp_path_factory: pytest.TempPathFactory

    def run(
        self, *script: str | pathlib.Path, given: Any = None, cwd: pathlib.Path | None = None
    ) -> Any:
        key = hashlib.sha256(json.dumps([list(map(str, script)), given]).encode()).hexdigest()

        def make(folder: pathlib.Path) -> None:
            environment = {**os.environ, **probing.ENVIRONMENT}
            done = self.forks.run(*script, given=json.dumps(given), cwd=cwd, env=environment)
            found = probing.answer(done)
            (folder / "answer").write_text(json.dumps(found))

        folder = shared(self.tmp_path_factory, f"original-{key}", make)
        return json.loads((folder / "answer").read_text())


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    """The original; skips where it cannot be had, fails under CI."""
    python = require()
    modules = ("tensorflow", "tensorflow.compat.v1")
    forks = Forks(python, modules, PLAIN_KERNELS)
    return Original(python, forks, tmp_path_factory)


def require() -> str:
    """Path of an interpreter with the original; skips or fails as the fixture does."""
    try:
        return find_or_make()
    except environment.Unavailable as error:
        reason = f"no environment with the original TPUEstimator: {error}"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def find_or_make(cache: pathlib.Path | None = None) -> str:
    """The interpreter that OVERRIDE names, else that of the environment that `compare` makes."""
    override = os.environ.get(OVERRIDE)
    if override:
        return environment.check_interpreter(override, OVERRIDE)
    return environment.find_or_make(environment.RELEASES["2.15"], cache=cache)
