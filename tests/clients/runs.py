"""Runs a client's script in a process of its own, as a user does."""

import json
import pathlib
import re
import subprocess
import sys
from typing import Any

import numpy as np
from support.client_packages import environment

HERE = pathlib.Path(__file__).parent


def run(
    clients: pathlib.Path, module: str, folder: pathlib.Path, *options: str, **flags: object
) -> str:
    """Runs `python -m tpu_estimator_compat run [options] -m module --flag=value ...`."""
    given = [f"--{name}={value}" for name, value in flags.items()]
    return python(clients, folder, "-m", *COMMAND, *options, "-m", module, *given)


def drive(
    clients: pathlib.Path, module: str, folder: pathlib.Path, *options: str, **flags: object
) -> str:
    """The same for a module that has `main` but defines no flags; see `drive.py`."""
    package = module.partition(".")[0]
    given = [f"--{name}={value}" for name, value in flags.items()]
    script = [f"--legacy-package={package}", *options, str(HERE / "drive.py"), module]
    return python(clients, folder, "-m", *COMMAND, *script, *given)


def python(
    clients: pathlib.Path, folder: pathlib.Path, *arguments: str, executable: str = sys.executable
) -> str:
    done = subprocess.run(
        [executable, *arguments],
        cwd=folder,
        env=environment(clients),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"exit status {done.returncode}:\n{done.stdout[-5000:]}"
    return done.stdout


def numbers(path: pathlib.Path) -> dict[str, float]:
    found = re.findall(r"^(\S+) = (\S+)$", path.read_text(), re.MULTILINE)
    return {name: float(value) for name, value in found}


def final_loss(log: str) -> float:
    """The loss of the last step, as the estimator logged it; the only one off TPU."""
    [loss] = re.findall(r"INFO:tensorflow:Loss for final step: ([-+.\deE]+|nan)", log)
    return float(loss.rstrip("."))


def found(log: str) -> Any:
    """What a script of ours printed at its end, as JSON after the word FOUND."""
    [line] = [line for line in log.splitlines() if line.startswith("FOUND ")]
    return json.loads(line.removeprefix("FOUND "))


def assert_alike(
    ours: dict[str, Any], theirs: dict[str, Any], rtol: float = 1e-5, atol: float = 0.0
) -> None:
    """Compares what a script found here with what it found in the original."""
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        if isinstance(value, dict):
            assert_alike(ours[name], value, rtol, atol)
        elif name == "names":
            assert ours[name] == value
        else:
            np.testing.assert_allclose(ours[name], value, rtol=rtol, atol=atol, err_msg=name)


COMMAND = ("tpu_estimator_compat", "run")
