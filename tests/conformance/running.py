"""Conformance runs: both sides at once, in processes that are started anew where one has ended.

Also a command, for the differences of some scenarios:

    python tests/conformance/running.py PYTHON_OF_THE_ORIGINAL [PART_OF_A_NAME...]
"""

from __future__ import annotations

import ast
import concurrent.futures
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
PROCESSES = 3
LIMIT = 120.0  # Seconds for a scenario; they take about one, on a busy machine ten.


@functools.cache
def names() -> tuple[str, ...]:
    """All scenarios, `module.function`, without importing them."""
    found = []
    for path in sorted((HERE / "scenarios").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and [a.arg for a in node.args.args] == [
                "model_dir",
                "record",
            ]:
                found.append(f"{path.stem}.{node.name}")
    return tuple(found)


def both(original_python: str, out: pathlib.Path, scenarios: tuple[str, ...]) -> None:
    """Runs the scenarios on both sides at the same time; `read` gives what was observed.

    Several processes to a side: they wait more than they compute.
    """
    sides = {"original": original_python, "ours": sys.executable}
    with concurrent.futures.ThreadPoolExecutor(len(sides) * PROCESSES) as pool:
        runs = [
            pool.submit(one_side, python, side, out / side / str(i), scenarios[i::PROCESSES])
            for i in range(PROCESSES)
            for side, python in sides.items()
        ]
        for run in runs:
            run.result()


def one_side(python: str, side: str, out: pathlib.Path, scenarios: tuple[str, ...]) -> None:
    """Runs the scenarios; one that ends its process is noted, and the rest go on in another.

    Raises:
        RuntimeError: The process ended outside of a scenario; its last words follow.
    """
    out.mkdir(parents=True)
    left = list(scenarios)
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    while left:
        command = [python, str(HERE / "driver.py"), "--side", side, "--out", str(out)]
        done = subprocess.run(
            [*command, "--limit", str(LIMIT), *left],
            cwd=out,  # modules in the working directory are legacy, which ours are not
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            capture_output=True,
            text=True,
            errors="replace",
        )
        with (out / "stderr").open("a") as kept:
            kept.write(done.stderr)
        current = out / "current"
        if done.returncode == 0:
            left = [name for name in left if not (out / f"{name}.json").exists()]
            continue
        if not current.exists():
            raise RuntimeError(f"{side}: exit {done.returncode}\n{done.stderr[-4000:]}")
        name = current.read_text()
        current.unlink()
        stacks = (out / f"{name}.stacks").read_text()
        ended = f"Timeout after {LIMIT:.0f} s" if stacks else f"exit {done.returncode}"
        (out / f"{name}.json").write_text(json.dumps({"ended": ended}))
        left = left[left.index(name) + 1 :]


def read(out: pathlib.Path, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The original's observations of a scenario, and ours."""
    found = []
    for side in ("original", "ours"):
        [path] = (out / side).glob(f"*/{name}.json")
        found.append(json.loads(path.read_text()))
    original, ours = found
    return original, ours


def main(python: str, *parts: str) -> None:
    import comparing

    out = pathlib.Path(tempfile.mkdtemp(prefix="conformance_"))
    asked = tuple(n for n in names() if not parts or any(p in n for p in parts))
    both(python, out, asked)
    for name in asked:
        found = comparing.differences(*read(out, name))
        print(name, *found, sep="\n    ")
    print(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
