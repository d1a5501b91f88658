"""Runs the driver under both interpreters and reads what it recorded."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from support.sharing import shared

DRIVER = pathlib.Path(__file__).with_name("driver.py")
Records = dict[str, Any]


def drive(python: str, side: str, scenarios: str, out: pathlib.Path) -> None:
    command = [python, str(DRIVER), "--side", side, "--scenarios", scenarios]
    command += ["--out", str(out / f"{side}.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500)
    if done.returncode:
        raise RuntimeError(f"{side}: exit {done.returncode}\n{done.stderr[-4000:]}")


def both(
    original_python: str, scenarios: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Records, Records]:
    """The records of the original and of this package; made once in a session.

    Args:
      original_python: an interpreter that has the original.
      scenarios: name of the module that holds them.
      tmp_path_factory: says where the records are kept.
    """

    def make(out: pathlib.Path) -> None:
        drive(original_python, "original", scenarios, out)
        drive(sys.executable, "ours", scenarios, out)

    root = shared(tmp_path_factory, scenarios, make)
    original, ours = (json.loads((root / f"{s}.json").read_text()) for s in ("original", "ours"))
    return original, ours
