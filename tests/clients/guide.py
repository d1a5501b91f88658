"""Walks through a page of the migration guide: does what its blocks say, one after the other."""

import os
import pathlib
import re
import subprocess
import sys

from support import python_path

HERE = pathlib.Path(__file__).parent
GUIDE = HERE.parents[1] / "migration_guide"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def walk(page: str, folder: pathlib.Path, clients: pathlib.Path) -> list[str]:
    """Runs the `sh` and `python` blocks of a page in a folder, and writes its `py` blocks there."""
    text = (GUIDE / page).read_text()
    environment = {
        **os.environ,
        "PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": python_path.joined(HERE.parents[1], clients),
    }
    printed = []
    for block in BLOCK.finditer(text):
        language, code = block.groups()
        if language == "py":
            [name] = re.findall(r"`(\w+\.py)`", text[: block.start()])[-1:]
            (folder / name).write_text(code)
            continue
        if language not in ("sh", "python"):
            continue
        words = ["bash", "-ec", code] if language == "sh" else [sys.executable, "-c", code]
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        # `scan` says by its exit status that it found something.
        assert done.returncode == 0, f"{code}\n{done.stdout[-4000:]}"
        printed.append(done.stdout)
    return printed
