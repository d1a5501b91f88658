"""IPython for one notebook: its shell runs the cells, with the names that TensorFlow dropped.

Magics do what they do in IPython. Those that only an interactive user needs, and those that install
something, are skipped, with a line on standard error.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import linecache
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Iterator
from typing import Any

from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.inputtransformer2 import leading_empty_lines
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from IPython.utils.syspathcontext import prepended_to_syspath
from traitlets.config import Config

from tpu_estimator_compat.old_names.legacy import locating
from tpu_estimator_compat.old_names.legacy.imports import LegacyImports, compiled
from tpu_estimator_compat.old_names.legacy.notebooks.program import Program
from tpu_estimator_compat.old_names.legacy.python_numpy import numpy_methods, python2

_SKIPPED = re.compile(
    r"%(auto\w+|clear|cls|config|connect_info|debug|edit|gui|load_ext|man|matplotlib|pdb"
    r"|pinfo2?|psearch|qtconsole|reload_ext|tensorboard|tensorflow_version|unload_ext)"
    r"|%%(html|HTML|javascript|js|latex|markdown|svg|SVG)"
)
_INSTALLS = re.compile(
    r"(?:%|!+\s*)(?:sudo\s+)?(?:\S*/)?(?:pip3?|conda|mamba|micromamba|uv pip|apt(?:-get)?"
    r"|python3? -m pip)\b"
)

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


@contextlib.contextmanager
def started(main: types.ModuleType, imports: LegacyImports) -> Iterator[Shell]:
    """A shell whose cells have the module `main`, as IPython's `get_ipython()`, for a while."""
    config = Config(
        {"HistoryManager": {"enabled": False}, "InteractiveShell": {"separate_out": ""}}
    )
    before = [(module, set(vars(module))) for module in (builtins, sys)]
    warnings.filterwarnings("ignore", "To exit: use")  # advice for terminals
    with tempfile.TemporaryDirectory(prefix="notebook_") as folder:
        _write_commands(pathlib.Path(folder), imports)
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", os.defpath)])
        os.environ.setdefault("MPLBACKEND", "Agg")  # as in Jupyter, no window opens
        shell = Shell.instance(config=config, ipython_dir=folder, user_module=main)
        try:
            shell.prepare(imports)
            yield shell
        finally:
            Shell.clear_instance()
            for module, names in before:
                for name in vars(module).keys() - names:
                    delattr(module, name)


def _write_commands(folder: pathlib.Path, imports: LegacyImports) -> None:
    """Writes shell commands that replace `python` and `pip`.

    `python` runs scripts with the names that TensorFlow dropped, and the settings of `imports`.
    `pip` installs nothing in the environment of this process, which must keep working.
    """
    packages = [f"--legacy-package={name}" for name in sorted(imports.packages)]
    options = [*packages, *(["--numpy-legacy"] if imports.numpy else [])]
    run = shlex.join(["-m", "tpu_estimator_compat", "run", *options])
    python = shlex.quote(sys.executable)
    for text, names in ((_PYTHON, ("python", "python3")), (_PIP, ("pip", "pip3"))):
        for name in names:
            (folder / name).write_text(text.format(python=python, run=run))
            (folder / name).chmod(0o755)


class _Compiler(CachingCompiler):
    """Gives the code of a cell the cell's name and lines, also within a magic such as `%time`."""

    name = ""
    _is_magic = False

    def begin(self, name: str, source: str) -> None:
        self.name, self._is_magic = name, source.startswith("%%")
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name

    def running(self) -> types.FrameType | None:
        """The frame of the cell's code; None before it runs."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.name:
            frame = frame.f_back
        return frame

    def cache(self, *unused: Any, **unused_options: Any) -> str:
        return self.name

    def ast_parse(self, source: str, filename: str = "", symbol: str = "exec") -> ast.AST:
        tree: ast.AST = super().ast_parse(source, self.name, symbol)
        frame = self.running()
        above = 0 if frame is None else frame.f_lineno - (0 if self._is_magic else 1)
        return ast.increment_lineno(tree, above)

    def __call__(self, source: Any, filename: str, symbol: str, **options: Any) -> Any:
        name = self.name if filename.startswith("<timed") else filename
        return super().__call__(source, name, symbol, **options)


class _OldCalls(ast.NodeTransformer):
    def visit(self, node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.Module)
        return numpy_methods.mended(node)


class _DisplayHook(DisplayHook):
    prompt_end_newline = True  # no empty line before values of several lines

    def write_output_prompt(self) -> None:
        pass


class Shell(InteractiveShell):
    """Runs the cells of a notebook; their first error ends the run."""

    def __init__(self, **settings: Any):
        self.compiler_class, self.displayhook_class = _Compiler, _DisplayHook
        super().__init__(**settings)

    def prepare(self, imports: LegacyImports) -> None:
        self._imports = imports
        self._error: BaseException | None = None
        self.magics_manager.register_alias("shell", "bash", "cell")  # Colab has it
        for name in ("less", "more"):
            self.magics_manager.register_alias(name, "cat")
        cleanup = self.input_transformer_manager.cleanup_transforms
        cleanup[cleanup.index(leading_empty_lines)] = _same_lines
        if imports.numpy:
            self.ast_transformers.append(_OldCalls())

    def init_virtualenv(self) -> None:
        """IPython would add another environment to sys.path, if VIRTUAL_ENV names one."""

    def init_user_ns(self) -> None:
        super().init_user_ns()
        self.user_ns["display"] = self.user_ns_hidden["display"] = display
        for name in ("exit", "quit"):  # IPython's leave the shell, Python's end the run
            del self.user_ns[name]

    def run(self, program: Program, *, silent: bool = False) -> None:
        """Runs a notebook's cells; first names the one whose syntax error will end the run."""
        errors = dict(self._syntax_errors(program))
        for number in sorted(errors.keys() - program.may_fail)[:1]:
            where = f"{errors[number].filename}, line {errors[number].lineno}"
            print(f"The run will end in {where}: {errors[number].msg}", file=sys.stderr)
        around = self.compile.name, self.compile._is_magic
        for number, source in program.cells.items():
            self.compile.begin(f"{program.path}, cell {number}", source)
            self._error = errors.get(number)
            if self._error is None:
                self.run_cell(source, store_history=not silent, silent=silent)
            if self._error is not None:
                error = self._error.with_traceback(_from_cell(self._error.__traceback__))
                if number not in program.may_fail or not isinstance(error, Exception):
                    raise error
                traceback.print_exception(error)
        self.compile.name, self.compile._is_magic = around

    def _syntax_errors(self, program: Program) -> Iterator[tuple[int, SyntaxError]]:
        """The errors of the cells that are not Python 3, by their numbers."""
        flag = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        for number, source in program.cells.items():
            name = f"{program.path}, cell {number}"
            try:
                with python2.explained(source, name), warnings.catch_warnings():
                    warnings.simplefilter("ignore", SyntaxWarning)  # run_cell warns again
                    for node in ast.parse(self.transform_cell(source), name).body:
                        compile(ast.Module([node], []), name, "exec", flag, dont_inherit=True)
            except SyntaxError as error:
                error.filename = name
                yield number, error.with_traceback(None)

    def showtraceback(self, exc_tuple: Any = None, *unused: Any, **unused_options: Any) -> None:
        """Keeps a cell's error for `run`, in place of printing it."""
        self._error = self._error or (exc_tuple[1] if exc_tuple else sys.exception())

    showsyntaxerror = showindentationerror = showtraceback  # type: ignore[assignment]

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        if self._is_skipped(f"%{magic_name} {line}", self.find_line_magic(magic_name)):
            return None
        names = self.user_ns["__builtins__"]
        try:
            return super().run_line_magic(magic_name, line, _stack_depth + 1)
        finally:
            self.user_ns["__builtins__"] = names  # %run sets Python's own

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        if self._is_skipped(f"%%{magic_name} {line}", self.find_cell_magic(magic_name)):
            return None
        return super().run_cell_magic(magic_name, line, cell)

    def system(self, cmd: str) -> None:
        """Runs a shell command, whose output is that of this process."""
        command = self.var_expand(cmd, depth=1)
        if self._is_skipped(f"!{command}", self.system):
            return
        sys.stdout.flush()
        status = self.user_ns["_exit_code"] = subprocess.run(command, shell=True).returncode
        if status:
            print(f"{self._named(f'!{cmd}')} ended with exit status {status}", file=sys.stderr)

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        if self._is_skipped(f"!{cmd}", self.getoutput):
            return []
        return super().getoutput(cmd, split, depth + 1)

    def safe_execfile(
        self, fname: Any, *where: Any, exit_ignore: bool = False, **unused: Any
    ) -> None:
        """Runs a script for `%run`, with the names that TensorFlow dropped; prints its errors."""
        path, namespace = os.path.abspath(fname), where[0]
        with prepended_to_syspath(os.path.dirname(path)):
            try:
                source = pathlib.Path(path).read_bytes()
                code, shown = compiled(source, path, numpy=self._imports.numpy)
                self._imports.prepare(namespace, self._imports.judge(shown), shown.python_2)
                exec(code, namespace)
            except SystemExit as error:
                if error.code and not exit_ignore:
                    print(f"SystemExit: {error.code}", file=sys.stderr)
            except Exception as error:
                shown_from = error.__traceback__ and error.__traceback__.tb_next
                traceback.print_exception(error.with_traceback(shown_from))

    def safe_run_module(self, mod_name: str, where: dict[str, Any]) -> None:
        self.safe_execfile(locating.module(mod_name).path, where)

    def safe_execfile_ipy(self, fname: Any, *unused: Any, **unused_options: Any) -> None:
        """Runs another notebook for `%run`, in the namespace of this one."""
        program = Program(pathlib.Path(fname).read_bytes(), str(fname))
        names = self.user_ns["__builtins__"]
        meaning = self._imports.judge(program.shown)
        self._imports.prepare(self.user_ns, meaning, program.shown.python_2)
        self.run(program, silent=True)
        self.user_ns["__builtins__"] = names

    def _is_skipped(self, text: str, found: Any) -> bool:
        """Whether a magic does not run, as standard error then says."""
        if _INSTALLS.match(text):
            print(
                f"Skipped {self._named(text)}: change the environment before the run",
                file=sys.stderr,
            )
        elif _SKIPPED.fullmatch(text.split()[0]):
            print(f"Skipped {self._named(text)}", file=sys.stderr)
        elif found is None:
            print(
                f"{self._named(text)} was not done: IPython has no such magic. Write it in Python, "
                "or run the notebook in Jupyter, after `%load_ext tpu_estimator_compat`.",
                file=sys.stderr,
            )
        else:
            return False
        return True

    def _named(self, text: str) -> str:
        frame = self.compile.running()
        return f"`{text.strip()}` ({self.compile.name}, line {frame.f_lineno if frame else 1})"


def _same_lines(lines: list[str]) -> list[str]:
    """IPython's, which removes empty lines at the top, but only where a `%%` must come first."""
    rest: list[str] = leading_empty_lines(lines)
    return rest if rest and rest[0].startswith("%%") else lines


def _from_cell(found: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without the frames of IPython around the cell's."""
    while found is not None and found.tb_frame.f_globals["__name__"].startswith("IPython."):
        found = found.tb_next
    return found
