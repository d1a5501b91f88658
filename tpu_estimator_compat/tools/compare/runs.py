"""Runs and records a script in a child process, on one side or the other."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import json
import os
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tpu_estimator_compat.engine.signals.activity import Activity
from tpu_estimator_compat.environment import JAX, SESSION, TENSORFLOW
from tpu_estimator_compat.old_names.legacy import locating
from tpu_estimator_compat.old_names.legacy.dialect import Dialect, dialect
from tpu_estimator_compat.tools import child_process, script_folders
from tpu_estimator_compat.tools.compare.report import Failure

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.compare.evidence import Evidence

_SIDES = pathlib.Path(__file__).with_name("sides")
_HERE = (sys.executable, "-m", "tpu_estimator_compat.tools.compare.sides.ours")
_ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "2",
    # TensorFlow's versions hardly differ in the kernels that are not oneDNN's.
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "PYTHONHASHSEED": "0",  # some code makes variables in the order of a set
}
_TAIL = 4000
"""Characters of a script's output that are kept where it left no traceback."""


@dataclasses.dataclass(frozen=True)
class Script:
    """The script that runs on both sides.

    Attributes:
      name: path of the script, or with `module` the name of a module, as for Python's `-m`.
      legacy_packages, modern_packages, numpy_legacy, behavior: as `legacy.script.run` takes them.
      own_folders: flags of the script that name a folder to write to; each side gets its own.
    """

    name: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    legacy_packages: tuple[str, ...] = ()
    numpy_legacy: bool = False
    behavior: str = "auto"
    own_folders: tuple[str, ...] = script_folders.FLAGS
    modern_packages: tuple[str, ...] = ()

    def arguments_in(self, folder: pathlib.Path) -> list[str]:
        """The arguments, with subfolders of `folder` in place of the folders that they name."""
        numbers: dict[str, int] = {}

        def own(value: str) -> str:
            return str(folder / f"model_dir-{numbers.setdefault(value, len(numbers))}")

        return script_folders.replaced(self.arguments, self.own_folders, own)


@dataclasses.dataclass(frozen=True)
class Setting:
    """The settings of a script's run with this package; None and 0 leave them to the script.

    Attributes:
      replicas: logical devices that the CPU is split into.
    """

    runtime: str | None = None
    jit: bool | None = None
    replicas: int = 0

    @classmethod
    def parse(cls, text: str) -> Setting:
        """The setting that "tf", "jax", "session", "jit" or "replicas=N" names; else ValueError."""
        named = {"tf": cls(TENSORFLOW), JAX: cls(JAX), SESSION: cls(SESSION), "jit": cls(jit=True)}
        what, _, number = text.partition("=")
        if text in named:
            return named[text]
        if what == "replicas" and number.isdecimal() and int(number) > 0:
            return cls(replicas=int(number))
        raise ValueError(f"Expected tf, jax, session, jit or replicas=N, got {text!r}.")


@dataclasses.dataclass(frozen=True)
class Runner:
    """Makes runs of one script.

    Attributes:
      new_script: the script to run with this package; None for the same.
      folder: the parent of the runs' folders.
      steps: maximum number of training steps of a run.
      time_limit: seconds that a run may take.
      environment: variables of the runs, besides those of this process.
    """

    script: Script
    folder: pathlib.Path
    steps: int
    time_limit: float
    new_script: Script | None = None
    first_step: bool = False
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def original(
        self, python: str, name: str, checkpoint: str | None, *, disturb: int | None = None
    ) -> Evidence:
        """A run called `name` on the original, whose interpreter is `python`.

        Args:
          checkpoint: path of a checkpoint to start from, or a run's folder, to start as that run.
          disturb: None, or a seed: before each step nonzero elements of trainable variables move
            by one unit in the last place, up or down at random.
        """
        command = [python, str(_SIDES / "original.py")]
        return self._run(command, name, checkpoint, disturb=disturb)

    def under(
        self, setting: Setting, name: str, checkpoint: str | None, *, disturb: int | None = None
    ) -> Evidence:
        """A run with this package, as an old side; arguments as for `original`."""
        return self._run(_HERE, name, checkpoint, setting, disturb=disturb)

    def here(self, name: str, checkpoint: str | None) -> Evidence:
        """The run to judge, with this package; arguments as for `original`."""
        return self._run(_HERE, name, checkpoint, script=self.new_script)

    def _run(
        self,
        command: Sequence[str],
        name: str,
        checkpoint: str | None,
        setting: Setting = Setting(),
        *,
        script: Script | None = None,
        disturb: int | None = None,
    ) -> Evidence:
        script = script or self.script
        folder = self.folder / folder_name(name)
        folder.mkdir(parents=True)
        config = {"jit_compile": setting.jit, "runtime": setting.runtime}
        job = {
            "folder": str(folder),
            "steps": self.steps,
            "checkpoint": checkpoint,
            "disturb": disturb,
            "first_step": self.first_step,
            "started": time.time(),
            **dataclasses.asdict(script),
            "arguments": script.arguments_in(folder),
            "dialect": dialect_of(script),
            "logical_cpus": setting.replicas,
            "config": {field: value for field, value in config.items() if value is not None},
        }
        (folder / "job.json").write_text(json.dumps(job, indent=1))
        from tpu_estimator_compat.tools.compare.evidence import of_run  # imports TensorFlow

        variables = {**_ENVIRONMENT, **os.environ, **self.environment}
        failure = self._wait([*command, str(folder / "job.json")], name, folder, variables)
        found = of_run(folder, name, failure)
        side = dataclasses.replace(found.side, script=(script.name, *script.arguments))
        return dataclasses.replace(found, side=side)

    def _wait(
        self, command: list[str], name: str, folder: pathlib.Path, variables: dict[str, str]
    ) -> Failure | None:
        """Waits for a process; returns a failure that is not in its record, if there is one."""
        process = child_process.start(command, folder / "log", environment=variables)
        with Activity(name) as tell:
            ending = child_process.wait(
                process,
                self.time_limit,
                lambda seconds: tell(name, f": step {_steps_made(folder)} of {self.steps}"),
            )
        if ending.code is None:
            what = f"it took more than {self.time_limit:g} s (--time-limit)"
            return Failure("time", what, _tail(folder))
        if (folder / "record.json").exists():
            return None
        return Failure("killed", f"its process {ending}", _tail(folder))


def folder_name(run: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in run)


def dialect_of(script: Script) -> str:
    """The meaning of `tensorflow` in the script: "v1" or "v2"; NoScriptError without a script."""
    if script.behavior != "auto":
        return script.behavior
    locating.check(script.name, module=script.module)
    path: str | None = script.name
    if script.module:
        spec = importlib.util.find_spec(script.name)
        path = spec.origin if spec else None
    try:
        tree = ast.parse(pathlib.Path(path or "").read_bytes())
    except (OSError, SyntaxError):  # the run will report it
        return "v2"
    return "v1" if dialect(tree) is Dialect.V1 else "v2"


def _steps_made(folder: pathlib.Path) -> int:
    path = folder / "losses.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _tail(folder: pathlib.Path) -> str:
    return (folder / "log").read_text(errors="replace")[-_TAIL:]
