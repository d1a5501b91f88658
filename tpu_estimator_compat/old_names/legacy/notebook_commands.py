"""Shell commands of notebooks: `python` is the Python that runs the notebook."""

from __future__ import annotations

import os
import pathlib
import shlex
import sys
import tempfile

from tpu_estimator_compat.old_names.legacy.imports import LegacyImports

# Options of Python stay before the script. A module is the notebook's own if it is in a folder that
# Python would search first.
_PYTHON = """#!/bin/sh
own() {{
  old=$IFS; IFS=:
  for folder in . $PYTHONPATH; do
    [ -e "$folder/$1" ] || [ -e "$folder/$1.py" ] && {{ IFS=$old; return 0; }}
  done
  IFS=$old; return 1
}}
options=
while :; do
  case "$1" in
    -[bBdEIOPqsSuvx]|-OO) options="$options $1"; shift;;
    -[WX]) options="$options $1 $2"; shift 2;;
    *) break;;
  esac
done
case "$1" in
  -m) [ "$2" != pip ] || {{ shift 2; exec pip "$@"; }}
      own "${{2%%.*}}" && exec {python} $options {run} "$@";;
  *.py) exec {python} $options {run} "$@";;
esac
exec {python} $options "$@"
"""
_PIP = """#!/bin/sh
case "$1" in
  install|uninstall) echo "Skipped pip $*: change the environment before the run" >&2;;
  *) exec {python} -m pip "$@";;
esac
"""


class Commands:
    """A folder of shell commands that replace `python` and `pip`; created on first use.

    `python` runs scripts with the names that TensorFlow dropped, and the settings of `imports`.
    `pip` installs nothing in the environment of this process, which must keep working.
    """

    def __init__(self, imports: LegacyImports) -> None:
        self.imports = imports
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def environment(self) -> dict[str, str]:
        """Environment variables for a command: this folder is first on the PATH."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="notebook_commands_")
            self._write(pathlib.Path(self._folder.name))
        path = os.pathsep.join(filter(None, [self._folder.name, os.environ.get("PATH")]))
        return {**os.environ, "PATH": path}

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _write(self, folder: pathlib.Path) -> None:
        packages = [f"--legacy-package={name}" for name in sorted(self.imports.packages)]
        options = [*packages, *(["--numpy-legacy"] if self.imports.numpy else [])]
        run = shlex.join(["-m", "tpu_estimator_compat", "run", *options])
        for text, names in ((_PYTHON, ("python", "python3")), (_PIP, ("pip", "pip3"))):
            for name in names:
                python = shlex.quote(sys.executable)
                (folder / name).write_text(text.format(python=python, run=run))
                (folder / name).chmod(0o755)
