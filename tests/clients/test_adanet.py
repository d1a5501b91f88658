"""`adanet` 0.9.0 stands on the heads of canned estimators, which are refused, and says so."""

from __future__ import annotations

import subprocess
import sys

import pytest
from runs import COMMAND
from support.client_packages import environment

pytestmark = pytest.mark.slow


def test_it_is_refused_with_a_reason(clients, tmp_path):
    (tmp_path / "script.py").write_text("import adanet\n")
    done = subprocess.run(
        [sys.executable, "-m", *COMMAND, "--legacy-package=adanet", "script.py"],
        cwd=tmp_path,
        env=environment(clients),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "RegressionHead went with TensorFlow 2.16" in done.stderr
    assert "Heads are not provided. Write loss, predictions and metrics in model_fn" in done.stderr
