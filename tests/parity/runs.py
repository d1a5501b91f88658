"""Parity runs: starts the driver under an interpreter, and reads its records."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

DRIVER = pathlib.Path(__file__).with_name("driver.py")
TIMEOUT = 300  # Seconds; a process takes about ten, and hangs must not stop the session.


@dataclasses.dataclass(frozen=True)
class Record:
    """What the driver wrote down of one run."""

    out: pathlib.Path
    name: str
    fields: dict[str, Any]

    @functools.cached_property
    def variables(self) -> dict[str, np.ndarray]:
        """The latest checkpoint's variables by name."""
        with np.load(self.out / f"{self.name}.variables.npz") as archive:
            described = self.fields["variables"]
            return {name: archive[entry["key"]] for name, entry in described.items()}

    @functools.cached_property
    def predictions(self) -> dict[str, np.ndarray]:
        """Predictions stacked over the examples, by key."""
        with np.load(self.out / f"{self.name}.predictions.npz") as archive:
            return dict(archive)

    @property
    def losses(self) -> list[float]:
        return self.fields["losses"]

    @property
    def evaluate(self) -> dict[str, dict[str, Any]]:
        return self.fields["evaluate"]

    def checked(self) -> Record:
        """This record, if the run ended well; fails with the run's own traceback if not."""
        error = self.fields["error"]
        if error:
            pytest.fail(f"run {self.name!r} in {self.out}:\n{error['traceback']}", pytrace=False)
        return self


Records = dict[str, Record]


def drive(
    python: str,
    side: str,
    family: str | None,
    out: pathlib.Path,
    runs: list[dict[str, Any]],
    logical_cpus: int = 1,
    environment: Mapping[str, str] = types.MappingProxyType({}),
) -> Records:
    """Does `runs` (fields of `driver.Run`) in one process of `python`.

    Args:
        python: Path of the interpreter.
        side: "original" or "ours".
        family: Name of a module in `support.families`; None where each run has its own.
        out: Directory of the records; runs' model_dirs not given lie below it.
        runs: What to do.
        logical_cpus: How many devices the CPU is split into.
        environment: Variables of the process, besides this one's.
    """
    out.mkdir(parents=True)
    for run in runs:
        run.setdefault("model_dir", str(out / run["name"]))
    job = out / "job.json"
    job.write_text(json.dumps({"logical_cpus": logical_cpus, "runs": runs}))
    command = [python, str(DRIVER), "--side", side, "--job", str(job), "--out", str(out)]
    command += ["--family", family] if family else []
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT, env={**os.environ, **environment}
    )
    (out / "log").write_text(done.stdout + done.stderr)
    if done.returncode:
        raise RuntimeError(
            f"{side} {family or out.name}: exit {done.returncode}\n{done.stderr[-4000:]}"
        )
    return read(out)


def read(out: pathlib.Path) -> Records:
    """The records in `out`, by run."""
    results = json.loads((out / "results.json").read_text())
    return {name: Record(out, name, fields) for name, fields in results.items()}
