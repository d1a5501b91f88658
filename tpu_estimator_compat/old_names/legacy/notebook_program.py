"""A notebook as a program: its cells of code in order, in one namespace, without IPython.

Magics that only show, time or prepare are skipped, and a line on standard error says so. Commands
of the shell, folders and variables of the environment are done as IPython does them. All others are
refused before the first cell runs.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import linecache
import os
import pathlib
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator
from typing import Any

from tpu_estimator_compat.old_names.legacy import bytecode, numpy_methods, python2
from tpu_estimator_compat.old_names.legacy.dialect import Dialect
from tpu_estimator_compat.old_names.legacy.locating import NoScriptError
from tpu_estimator_compat.old_names.legacy.notebook_cells import (
    Magic,
    NotANotebook,
    Notebook,
    place,
)

_SHOW = "_shows"
_SKIPPED = re.compile(
    r"%(autoreload|config|load_ext|lsmagic|matplotlib|pdb|precision|reload_ext|tensorboard"
    r"|tensorflow_version|unload_ext|who\w*|xmode)|%%(html|javascript|js|latex|markdown|svg)"
    r"|%%?(capture|prun|time|timeit)"
)
_INSTALLS = re.compile(
    r"(?:%|!\s*)(?:sudo\s+)?(?:\S*/)?(?:pip3?|conda|mamba|apt(?:-get)?|python3? -m pip)\b"
)
_DONE = ("%cd", "%env", "%set_env", "%%bash", "%%sh", "%%file", "%%writefile")
_INSERTED = re.compile(r"\{([^{}]+)\}|\$(\w+)")


class Program:
    """The cells of a notebook, compiled; `numpy` is that of `bytecode.compiled`.

    Raises:
      NoScriptError: it is no notebook of Python, or has magics that cannot be done.
      SyntaxError: a cell is not Python 3; with a note if it is Python 2.
    """

    def __init__(self, source: bytes, path: str, *, numpy: bool) -> None:
        try:
            notebook = Notebook(source.decode("utf-8-sig"))
        except (NotANotebook, UnicodeDecodeError) as error:
            raise NoScriptError(f"{path}: {error}") from error
        self._path = path
        self._magics, self._call = notebook.magics, notebook.call
        self._skipped = [m for m in self._magics.values() if _is_skipped(m)]
        if refused := [m for m in self._magics.values() if not _can_be_done(m)]:
            raise NoScriptError(
                f"IPython alone can do {', '.join(map(self._named, refused))}. Write it in Python, "
                "or run the notebook in Jupyter, after `%load_ext tpu_estimator_compat`."
            )
        text = notebook.program()
        with self._errors_in_cells(text):
            tree = ast.parse(text)
            tree.body.sort(key=lambda s: not _is_future(s))  # any cell may have one, at any line
            self.found = bytecode.of_tree(tree, path, numpy=numpy)
            if any(m.text.startswith("%tensorflow_version 1") for m in self._skipped):  # Colab's
                self.found = dataclasses.replace(self.found, dialect=Dialect.V1)
            parts = _by_cell(numpy_methods.mended(tree) if numpy else tree, text)
            self._cells = [self._compiled(n, notebook.cells[n], body) for n, body in parts.items()]

    def run(self, namespace: dict[str, Any]) -> None:
        """Runs the cells, in the notebook's folder, in the namespace of `__main__`."""
        for magic in self._skipped:
            why = "; what it installs must be there before" if _INSTALLS.match(magic.text) else ""
            print(f"Skipped {self._named(magic)}{why}", file=sys.stderr)

        def of_ipython(number: int) -> Any:
            return self._do(self._magics[number], namespace)

        ours = {self._call: of_ipython, _SHOW: _show, "display": _display}
        namespace["__builtins__"] = {**namespace["__builtins__"], **ours}
        environment = dict(os.environ)
        if any(magic.text.startswith("%matplotlib") for magic in self._skipped):
            os.environ.setdefault("MPLBACKEND", "Agg")  # as in Jupyter, no window opens
        try:
            with contextlib.chdir(os.path.dirname(os.path.abspath(self._path))):
                for code in self._cells:
                    exec(code, namespace)
        finally:
            os.environ.clear()
            os.environ.update(environment)

    def _compiled(self, number: int, source: str, body: list[ast.stmt]) -> types.CodeType:
        """The code of a cell; the value of its last expression is shown."""
        last = body[-1] if body else None
        if isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
            shown = ast.Call(ast.Name(_SHOW, ast.Load()), [last.value], [])
            last.value = ast.copy_location(shown, last.value)
            ast.copy_location(shown.func, last.value)
        name = f"{self._path}, cell {number}"
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        return compile(ast.Module(body, []), name, "exec", dont_inherit=True)

    @contextlib.contextmanager
    def _errors_in_cells(self, text: str) -> Iterator[None]:
        try:
            with python2.explained(text, self._path):
                yield
        except SyntaxError as error:
            cell, error.lineno = place(text, error.lineno or 1)
            error.end_lineno = None
            error.filename = f"{self._path}, cell {cell}"
            raise

    def _named(self, magic: Magic) -> str:
        line = magic.text.partition("\n")[0]
        return f"`{line}` ({self._path}, cell {magic.cell}, line {magic.line})"

    def _do(self, magic: Magic, namespace: dict[str, Any]) -> Any:
        """Does a magic; returns the value that is assigned."""
        if _is_skipped(magic):
            return None
        text = _inserted(magic.text, namespace)
        word, _, rest = text.partition("\n")[0].partition(" ")
        sys.stdout.flush()
        if text.startswith("!"):
            return self._shell(magic, text.lstrip("!"))
        if word in ("%%bash", "%%sh"):
            script = magic.text.partition("\n")[2]  # braces and dollars are the shell's
            subprocess.run([word[2:], *shlex.split(rest)], input=script, text=True, check=True)
        elif word in ("%%file", "%%writefile"):
            *options, name = shlex.split(rest)
            with open(name, "a" if "-a" in options else "w", encoding="utf-8") as file:
                file.write(magic.text.partition("\n")[2] + "\n")
        elif word == "%cd":
            os.chdir(pathlib.Path(shlex.split(rest)[0] if rest.strip() else "~").expanduser())
        else:
            name, value = re.split(r"\s*=\s*|\s+", rest.strip(), maxsplit=1)
            os.environ[name] = value
        return None

    def _shell(self, magic: Magic, command: str) -> list[str] | None:
        """Runs a command: the lines that it prints are returned if assigned, else shown."""
        pipe = subprocess.PIPE if magic.assigned else None
        done = subprocess.run(command, shell=True, stdout=pipe, text=True)
        if done.returncode:
            status = f"ended with exit status {done.returncode}"
            print(f"{self._named(magic)} {status}", file=sys.stderr)
        return done.stdout.splitlines() if magic.assigned else None


def _is_skipped(magic: Magic) -> bool:
    word = magic.text.split()[0]
    helps = word.startswith("?") or word.endswith("?")
    return not magic.assigned and (
        _SKIPPED.fullmatch(word) is not None or helps or _INSTALLS.match(magic.text) is not None
    )


def _can_be_done(magic: Magic) -> bool:
    if _is_skipped(magic) or magic.text.startswith("!"):
        return True
    word, _, rest = magic.text.partition("\n")[0].partition(" ")
    if word in ("%env", "%set_env"):
        return re.search(r"[\s=]", rest.strip()) is not None and not magic.assigned
    return word in _DONE and not magic.assigned and (bool(rest.strip()) or "file" not in word)


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _by_cell(tree: ast.Module, text: str) -> dict[int, list[ast.stmt]]:
    """The statements of each cell, with the lines that they have there."""
    parts: dict[int, list[ast.stmt]] = {}
    for statement in tree.body:
        cell, line = place(text, statement.lineno)
        moved = ast.increment_lineno(statement, line - statement.lineno)
        parts.setdefault(cell, []).append(moved)
    return dict(sorted(parts.items()))


def _inserted(text: str, namespace: dict[str, Any]) -> str:
    """A command with the values of `{expression}` and `$name`, where they have one."""

    def value(found: re.Match[str]) -> str:
        try:
            return str(eval(found[1] or found[2], namespace))
        except Exception:  # it is the shell's, then, as IPython has it
            return found[0]

    return _INSERTED.sub(value, text)


def _show(value: object) -> None:
    if value is not None:
        print(repr(value))


def _display(*values: object) -> None:
    for value in values:
        print(repr(value))
