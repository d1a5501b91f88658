"""A notebook as a program: runs its code cells in order, in one namespace, without IPython.

Magics that only show, time or install something are skipped, with a line on standard error. Shell
commands and scripts run as in IPython. Magics that need IPython print a message when their cell is
reached.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import linecache
import os
import sys
import traceback
import types
import warnings
from typing import Any

from tpu_estimator_compat.old_names.legacy import compiling, numpy_methods, python2
from tpu_estimator_compat.old_names.legacy.dialect import Dialect
from tpu_estimator_compat.old_names.legacy.imports import LegacyImports
from tpu_estimator_compat.old_names.legacy.locating import NoScriptError
from tpu_estimator_compat.old_names.legacy.notebook_cells import (
    Magic,
    NotANotebook,
    Notebook,
    place,
)
from tpu_estimator_compat.old_names.legacy.notebook_commands import Commands
from tpu_estimator_compat.old_names.legacy.notebook_magics import INSTALLS, Magics, is_skipped

_SHOW = "_shows"


class Program:
    """The compiled cells of a notebook; NoScriptError if the file is not a Python notebook."""

    def __init__(self, source: bytes, path: str, *, numpy: bool) -> None:
        try:
            notebook = Notebook(source.decode("utf-8-sig"))
        except (NotANotebook, UnicodeDecodeError) as error:
            raise NoScriptError(f"{path}: {error}") from error
        self._path, self._numpy = path, numpy
        self._magics, self._call = notebook.magics, notebook.call
        self._may_fail = notebook.may_fail
        self._skipped = [m for m in self._magics.values() if is_skipped(m)]
        errors = {n: self._error(n, code) for n, code in notebook.cells.items()}
        self._cells: dict[int, types.CodeType | SyntaxError] = {
            n: error for n, error in errors.items() if error is not None
        }
        text = notebook.program(without=self._cells)
        tree = _futures_first(ast.parse(text))
        self.found = compiling.of_tree(tree, path, numpy=numpy)
        if any(
            m.text.startswith("%tensorflow_version 1") for m in self._magics.values()
        ):  # Colab's magic
            self.found = dataclasses.replace(self.found, dialect=Dialect.V1)
        parts = _by_cell(numpy_methods.mended(tree) if numpy else tree, text)
        for number, body in parts.items():
            self._cells[number] = self._compiled(number, notebook.cells[number], body)

    def run(self, namespace: dict[str, Any]) -> None:
        """Runs the cells in the notebook's folder, with `namespace` as their globals."""
        environment = dict(os.environ)
        commands = Commands(next(f for f in sys.meta_path if isinstance(f, LegacyImports)))
        if any(m.text.startswith("%matplotlib") for m in self._magics.values()):
            os.environ.setdefault("MPLBACKEND", "Agg")  # as in Jupyter, no window opens
        try:
            with contextlib.chdir(os.path.dirname(os.path.abspath(self._path))):
                self._run(namespace, commands)
        finally:
            commands.close()
            os.environ.clear()
            os.environ.update(environment)

    def _run(self, namespace: dict[str, Any], commands: Commands) -> None:
        """Runs the cells in the current folder; first names skipped magics and a syntax error."""
        for magic in self._skipped:
            why = ": change the environment before the run" if INSTALLS.match(magic.text) else ""
            print(f"Skipped {self._named(magic)}{why}", file=sys.stderr)
        kept = [cell for n, cell in self._cells.items() if n not in self._may_fail]
        ending = [cell for cell in kept if isinstance(cell, SyntaxError)]
        for error in ending[:1]:
            where = f"{error.filename}, line {error.lineno}"
            print(f"The run will end in {where}: {error.msg}", file=sys.stderr)
        magics = Magics(namespace, commands, lambda path: self._other(path, namespace, commands))

        def of_ipython(number: int) -> Any:
            magic = self._magics[number]
            if is_skipped(magic):
                return None
            return magics.do(magic, self._named(magic), sys._getframe(1).f_locals)

        before = namespace["__builtins__"]
        ours = {self._call: of_ipython, _SHOW: _show, "display": _display}
        namespace["__builtins__"] = {**before, **ours}
        for number, cell in sorted(self._cells.items()):
            try:
                if isinstance(cell, SyntaxError):
                    raise cell
                exec(cell, namespace)
            except Exception as error:
                if number not in self._may_fail:
                    raise
                shown = error.__traceback__ and error.__traceback__.tb_next
                traceback.print_exception(error.with_traceback(shown))
        namespace["__builtins__"] = before

    def _other(self, path: str, namespace: dict[str, Any], commands: Commands) -> None:
        with open(path, "rb") as file:
            other = Program(file.read(), path, numpy=self._numpy)
        before, meaning = namespace["__builtins__"], commands.imports.judge(other.found)
        commands.imports.prepare(namespace, meaning, other.found.python_2)
        other._run(namespace, commands)
        namespace["__builtins__"] = before

    def _compiled(self, number: int, source: str, body: list[ast.stmt]) -> types.CodeType:
        last = body[-1] if body else None
        if isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
            shown = ast.Call(ast.Name(_SHOW, ast.Load()), [last.value], [])
            last.value = ast.copy_location(shown, last.value)
            ast.copy_location(shown.func, last.value)
        name = f"{self._path}, cell {number}"
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        return compile(ast.Module(body, []), name, "exec", dont_inherit=True)

    def _error(self, number: int, code: str) -> SyntaxError | None:
        name = f"{self._path}, cell {number}"
        try:
            with python2.explained(code, name), warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # the real compilation warns again
                compile(_futures_first(ast.parse(code, name)), name, "exec", dont_inherit=True)
        except SyntaxError as error:
            error.filename = name
            return error.with_traceback(None)
        return None

    def _named(self, magic: Magic) -> str:
        line = magic.text.partition("\n")[0]
        return f"`{line}` ({self._path}, cell {magic.cell}, line {magic.line})"


def _futures_first(tree: ast.Module) -> ast.Module:
    """Moves `__future__` imports to the top of the module: cells may have them anywhere."""
    tree.body.sort(key=lambda statement: not _is_future(statement))
    return tree


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _by_cell(tree: ast.Module, text: str) -> dict[int, list[ast.stmt]]:
    parts: dict[int, list[ast.stmt]] = {}
    for statement in tree.body:
        cell, line = place(text, statement.lineno)
        moved = ast.increment_lineno(statement, line - statement.lineno)
        parts.setdefault(cell, []).append(moved)
    return dict(sorted(parts.items()))


def _show(value: object) -> None:
    if value is not None:
        print(repr(value))


def _display(*values: object) -> None:
    for value in values:
        print(repr(value))
