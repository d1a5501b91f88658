"""Sessions of pytest that a test starts, with this package's plugin."""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import textwrap

PLUGIN = "tpu_estimator_compat.testing.plugin"


@dataclasses.dataclass(frozen=True)
class Session:
    """What such a session said.

    Attributes:
      status: its exit status.
      output: what it printed.
    """

    status: int
    output: str

    def counts(self) -> dict[str, int]:
        """How many tests passed, failed and so on, as the last line has it."""
        last = self.output.rstrip().rpartition("\n")[2]
        return {kind: int(count) for count, kind in re.findall(r"(\d+) ([a-z]+)", last)}

    def outcome(self, test: str) -> str:
        """PASSED or FAILED and so on, of a session with `-rA`."""
        [found] = re.findall(rf"^([A-Z]+) \S*{re.escape(test)}(?: - .*)?$", self.output, re.M)
        return found


def write(folder: pathlib.Path, **modules: str) -> None:
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(source))


def run(folder: pathlib.Path, *args: str, plugin: str = PLUGIN, **env: str) -> Session:
    """A session in a process of its own, with no other plugin than those that are named."""
    # The session is no worker of the one that tests it.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", plugin, *args],
        cwd=folder,
        env={**inherited, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **env},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
    )
    return Session(done.returncode, done.stdout)
