"""Runs a client's script in a process of its own, as a user does."""

import pathlib
import re
import subprocess
import sys

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


COMMAND = ("tpu_estimator_compat", "run")
