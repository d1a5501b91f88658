"""Calls the programs: each step for several of them in one process."""

from __future__ import annotations

import ast
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Callable
from typing import Any

import pytest

from support import TESTS, python_path
from support.forks import Forks
from support.installations import kept

HERE = pathlib.Path(__file__).parent
PROGRAMS = (
    "mlp",
    "convnet",
    "resnet",
    "decoder",
    "rnn",
    "rnn:cell=gru",
    "rnn:layers=2:dropout=0.2",
    "rnn:both=True",
    "wide_deep",
    "gan",
    "recommender",
    "attention",
    "separable",
    "slim_net",
    "loops",
    "bert",
    "albert",
)
TORCH = "torch==2.13.0+cpu"
NEED_CLIENTS = ("bert", "albert")
"""Programs of installed packages."""


FORKS = Forks(modules=("tensorflow", "tpu_estimator_compat", "keras"))


def environment(**more: str) -> dict[str, str]:
    return {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": python_path.joined(TESTS.parent, TESTS),
        **more,
    }


def call(words: list[Any], log: pathlib.Path, **env: str) -> int:
    with open(log, "w") as output:
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            env=environment(**env),
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=1800,
        )
    return done.returncode


def folder_of(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / name.replace(":", "-")


def prepare(folder: pathlib.Path, names: list[str], clients: pathlib.Path | None = None) -> None:
    """Trains and exports programs, see `prepare.py`."""
    path = python_path.joined(TESTS.parent, TESTS, *([clients] if clients else []))
    done = FORKS.run(HERE / "prepare.py", folder, *names, env=environment(PYTHONPATH=path))
    (folder / "prepare.log").write_text(done.stdout + done.stderr)


def lead_out(
    folder: pathlib.Path, name: str, kind: str, clients: pathlib.Path | None = None
) -> int:
    """`to-keras` of a program's SavedModel ("saved") or of its script; gives the exit status."""
    home = folder_of(folder, name)
    out = home / kind
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    program, *changed = name.split(":")
    sources: dict[str, list[Any]] = {
        "saved": [pathlib.Path(home, "export").read_text()],
        "script": [HERE / "run.py", program, f"--model_dir={home / 'model'}", *changed],
    }
    path = python_path.joined(TESTS.parent, TESTS, *([clients] if clients else []))
    command = ["-m", "tpu_estimator_compat", "to-keras", "--out", out / "model.py"]
    done = FORKS.run(*command, *sources[kind], env=environment(PYTHONPATH=path))
    (out / "log").write_text(done.stdout + done.stderr)
    return done.returncode


def run_alone(
    folder: pathlib.Path, names: list[str], backend: str, packages: pathlib.Path | None = None
) -> None:
    """Runs the written files with Keras alone, see `own.py`; `packages` has the backend's."""
    homes = [folder_of(folder, name) for name in names]
    env = {"KERAS_BACKEND": backend, "PYTHONPATH": str(packages or "")}
    call([HERE / "own.py", *homes], folder / f"{backend}.log", **env)


def torch() -> pathlib.Path:
    """A folder with PyTorch for CPUs, installed once; skips where no index has it."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]

    def install(home: pathlib.Path) -> None:
        command = [*pip, "--target", str(home), TORCH]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"{TORCH} cannot be installed: {done.stderr.strip()[-300:]}")

    return kept("torch", TORCH, install)


def found(folder: pathlib.Path, name: str, kind: str, backend: str) -> dict[str, Any]:
    path = folder_of(folder, name) / kind / f"{backend}.json"
    return json.loads(path.read_text()) if path.exists() else {"error": "nothing was run"}


def code_lines(text: str) -> int:
    """Lines of code: without comments, docstrings and blank lines."""
    strings = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            strings |= set(range(node.lineno, node.end_lineno + 1))
    ignored = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in ignored and token.type != tokenize.ENDMARKER:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - strings)


def author_lines(name: str, clients: pathlib.Path | None = None) -> int:
    """Lines of a program's model code: without its data, imports and parameters."""
    source = (HERE / "programs" / f"{name.partition(':')[0]}.py").read_text()
    kept = _definitions(source, lambda name: name != "input_fn")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "OF_PACKAGE":
            assert clients is not None
            file, names = ast.literal_eval(node.value)
            kept += _definitions((clients / file).read_text(), names.split().__contains__)
    return sum(map(code_lines, kept))


def _definitions(source: str, is_wanted: Callable[[str], bool]) -> list[str]:
    return [
        ast.get_source_segment(source, node) or ""
        for node in ast.parse(source).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and is_wanted(node.name)
    ]


def written_lines(folder: pathlib.Path, name: str, kind: str) -> int:
    return code_lines((folder_of(folder, name) / kind / "model.py").read_text())


def main() -> None:
    folder, *names = pathlib.Path(sys.argv[1]).absolute(), *sys.argv[2:]
    names = names or list(PROGRAMS)
    cache = pathlib.Path.home() / ".cache/tpu_estimator_compat/clients-py311"
    clients = cache if {*names} & {*NEED_CLIENTS} else None
    folder.mkdir(exist_ok=True)
    new = [name for name in names if not folder_of(folder, name).exists()]
    if new:
        prepare(folder, new, clients)
    kinds = ("saved", "script")
    statuses = {(n, kind): lead_out(folder, n, kind, clients) for n in names for kind in kinds}
    done = [name for name in names if not all(statuses[name, kind] for kind in kinds)]
    for backend in ("tensorflow", "jax"):
        run_alone(folder, done, backend)
    for (name, kind), status in statuses.items():
        log = (folder_of(folder, name) / kind / "log").read_text()
        if status:
            print(f"{name} {kind}: status {status}", *log.splitlines()[-12:], sep="\n    | ")
            continue
        lines = written_lines(folder, name, kind), author_lines(name, clients)
        print(f"{name} {kind}: {lines[0]} lines, the author's {lines[1]}")
        for backend in ("tensorflow", "jax"):
            told = found(folder, name, kind, backend)
            print(f"    {backend}:", *(f"{k}={v}" for k, v in told.items()))


if __name__ == "__main__":
    main()
