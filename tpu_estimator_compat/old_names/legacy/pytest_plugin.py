"""A pytest plugin that collects tests of legacy code unchanged.

  python -m tpu_estimator_compat run -m pytest tests

`run` names the plugin in PYTEST_PLUGINS, which processes of pytest-xdist inherit. Without `run`,
pytest's option `-p tpu_estimator_compat.old_names.legacy.pytest_plugin` installs the same finder.
"""

from __future__ import annotations

import os
import sys

import pytest

from tpu_estimator_compat.old_names.legacy import children
from tpu_estimator_compat.old_names.legacy.dialect import Shown
from tpu_estimator_compat.old_names.legacy.imports import LegacyImports


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Puts the finder of legacy modules before pytest's own, which rewrites asserts."""
    finders = [finder for finder in sys.meta_path if isinstance(finder, LegacyImports)]
    finders = finders or [_installed(early_config)]
    others = [finder for finder in sys.meta_path if not isinstance(finder, LegacyImports)]
    sys.meta_path[:] = [*finders, *others]


def _installed(config: pytest.Config) -> LegacyImports:
    """Installs `run`'s finder for modules below the working directory, until pytest ends."""
    imports, chosen = children.begin(os.getcwd())
    chosen.start(Shown("pytest"), None)
    config.add_cleanup(lambda: sys.meta_path.remove(imports))
    return imports
