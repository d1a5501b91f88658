"""The report in the README is one that its command prints."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.slow
def test_the_report_in_the_readme(tmp_path):
    text = (ROOT / "README.md").read_text()
    [shown] = re.findall(r"^```text\n(Preflight: .*?)^```$", text, re.MULTILINE | re.DOTALL)
    [command] = re.findall(r"^python (-m tpu_estimator_compat preflight .*)$", text, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, *shlex.split(command)],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80", "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    printed = done.stdout[done.stdout.index("Preflight: ") :]
    assert without_times(printed) == without_times(shown)


def without_times(report: str) -> list[str]:
    varying = ("this check took", "from the cache")
    return [line for line in report.rstrip().splitlines() if not line.startswith(varying)]
