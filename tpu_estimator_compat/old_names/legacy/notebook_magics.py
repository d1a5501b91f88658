"""Runs magics of notebooks as IPython does, without IPython."""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tpu_estimator_compat.old_names.legacy import compiling, locating
from tpu_estimator_compat.old_names.legacy.imports import LegacyImports
from tpu_estimator_compat.old_names.legacy.notebook_cells import Magic, is_notebook
from tpu_estimator_compat.old_names.legacy.notebook_commands import Commands

_SKIPPED = re.compile(
    r"%(auto\w+|clear|cls|colors|config|connect_info|doctest_mode|gui|hist(ory)?|killbgscripts"
    r"|load_ext|log\w+|lsmagic|magic|man|matplotlib|notebook|page|pdb|pdef|pdoc|pfile|pinfo2?"
    r"|pprint|precision|psearch|psource|pycat|qtconsole|quickref|rehashx|reload_ext|tb|tensorboard"
    r"|tensorflow_version|unload_ext|who(s)?|xmode)"
    r"|%%(html|HTML|javascript|js|latex|markdown|svg|SVG)|%%?(capture|prun|time|timeit)"
)
INSTALLS = re.compile(
    r"(?:%|!+\s*)(?:sudo\s+)?(?:\S*/)?(?:pip3?|conda|mamba|micromamba|uv pip|apt(?:-get)?"
    r"|python3? -m pip)\b"
)
_ALIASES = {
    **{name: name for name in ("cat", "cp", "mkdir", "mv", "rm", "rmdir")},
    **{"ls": "ls -F", "ll": "ls -F -o", "less": "cat", "more": "cat"},
    "lf": "ls -F -o %l | grep ^-",
    "lk": "ls -F -o %l | grep ^l",
    "ldir": "ls -F -o %l | grep /$",
    "lx": "ls -F -o %l | grep ^-..x",
}
_INTERPRETERS = {
    **{name: name for name in ("bash", "perl", "pypy", "python", "python3", "ruby", "sh")},
    **{"python2": "python2", "script": "", "shell": "bash"},  # shell is Colab's
}
_INSERTED = re.compile(r"\{([^{}]+)\}|\$(\$?[\w.]*\w)(?=([^']*'[^']*')*[^']*$)")


class UsageError(Exception):
    """A magic has invalid arguments; named after IPython's error."""


class _NotDoneError(Exception):
    """Only IPython can run this magic."""


class _Lines(list[str]):
    """A command's output lines, as IPython's SList: `n` joins them with newlines, `s` spaces."""

    @property
    def n(self) -> str:
        return "\n".join(self)

    @property
    def s(self) -> str:
        return " ".join(self)


class Magics:
    """Runs the magics of a running notebook.

    `namespace` has the globals of its cells; `commands` makes the environment of its shell
    commands; `notebook` runs another notebook in the same namespace, for `%run`.
    """

    def __init__(
        self, namespace: dict[str, Any], commands: Commands, notebook: Callable[[str], None]
    ) -> None:
        self._namespace = namespace
        self._commands = commands
        self._notebook = notebook
        self._folders = [os.getcwd()]
        self._pushed: list[str] = []

    def do(self, magic: Magic, name: str, local: Mapping[str, Any]) -> Any:
        """Runs a magic and returns its value; prints a message, with `name`, if it cannot.

        `magic` is not a skipped one; `local` has the local variables at its line.
        """
        line, _, body = magic.text.partition("\n")
        sys.stdout.flush()
        if magic.automatic and line[1:].split()[0] in self._namespace:
            return eval(line[1:], self._namespace)
        line = _inserted(line, self._namespace, local)
        try:
            if line.startswith("!"):
                is_value = magic.assigned or line.startswith("!!")
                return self._system(line.lstrip("!"), name, captured=is_value)
            if magic.automatic and _SKIPPED.fullmatch(line.split()[0]):
                print(f"Skipped {name}", file=sys.stderr)
                return None
            word, rest = re.fullmatch(r"(%%?\S*)\s*(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
            if word.startswith("%%"):
                return self._cell(word[2:], rest, body, name)
            return self._line(word[1:], rest, name)
        except _NotDoneError:
            print(
                f"{name} was not done: IPython alone can do it. Write it in Python, or run the "
                "notebook in Jupyter, after `%load_ext tpu_estimator_compat`.",
                file=sys.stderr,
            )

    def _line(self, word: str, rest: str, name: str) -> Any:
        if word in _ALIASES:
            command = _ALIASES[word]
            text = command.replace("%l", rest) if "%l" in command else f"{command} {rest}"
            return self._system(text, name)
        if word in ("sx", "system"):
            return self._system(rest, name, captured=True)
        if word not in _LINES:
            raise _NotDoneError
        return _LINES[word](self, rest.strip())

    def _cell(self, word: str, rest: str, body: str, name: str) -> Any:
        if word in ("!", "sx", "system"):
            return self._system("\n".join([rest, body]), name, captured=True)
        if word in ("file", "writefile") and rest.strip():
            return _write(rest, body)
        if word not in _INTERPRETERS:
            raise _NotDoneError
        return self._script(
            f"{_INTERPRETERS[word]} {rest}", body
        )  # braces and dollars in the body stay unchanged

    def _system(self, command: str, name: str, *, captured: bool = False) -> _Lines | None:
        """Runs a shell command; returns the lines that it prints, or lets them be shown."""
        done = subprocess.run(
            command,
            shell=True,
            env=self._commands.environment(),
            stdout=subprocess.PIPE if captured else None,
            stderr=subprocess.STDOUT if captured else None,
            text=True,
        )
        self._namespace["_exit_code"] = done.returncode
        if done.returncode:
            print(f"{name} ended with exit status {done.returncode}", file=sys.stderr)
        return _Lines(done.stdout.splitlines()) if captured else None

    def _script(self, line: str, body: str) -> None:
        options, command = _SCRIPT_OPTIONS.parse_known_args(shlex.split(line))
        if options.bg or options.proc or not command:
            raise _NotDoneError
        pipes = {
            stream: subprocess.PIPE if variable else None
            for stream, variable in (("stdout", options.out), ("stderr", options.err))
        }
        environment = self._commands.environment()
        try:
            done = subprocess.run(command, input=f"{body}\n", text=True, env=environment, **pipes)  # type: ignore[call-overload]
        except FileNotFoundError:
            print(f"Couldn't find program: {command[0]!r}")
            return
        for variable, text in ((options.out, done.stdout), (options.err, done.stderr)):
            if variable:
                self._namespace[variable] = text
        if options.raise_error:
            done.check_returncode()

    def _cd(self, rest: str) -> None:
        quiet = re.match(r"-q(?:\s+|$)", rest)
        folder = (rest[quiet.end() :] if quiet else rest).strip("'\"") or "~"
        if folder == "-":
            if len(self._folders) < 2:
                raise UsageError("%cd -: No previous directory to change to.")
            folder = self._folders[-2]
        try:
            os.chdir(pathlib.Path(folder).expanduser())
            self._folders.append(os.getcwd())
        except OSError as error:  # as in a shell, execution goes on
            print(error)
        if not quiet:
            print(os.getcwd())

    def _pushd(self, rest: str) -> list[str]:
        before = os.getcwd()
        if rest:
            self._cd(rest)
        self._pushed.insert(0, before)
        return self._pushed

    def _popd(self, rest: str) -> None:
        del rest
        if not self._pushed:
            raise UsageError("%popd on empty stack")
        top = self._pushed.pop(0)
        self._cd(top)
        print("popd ->", top)

    def _env(self, rest: str) -> Any:
        if not rest:
            return dict(os.environ)
        name, *values = re.split(r"\s*=\s*|\s+", rest, maxsplit=1)
        if values:
            os.environ[name] = values[0]
            print(f"env: {name}={values[0]}")
        elif name not in os.environ:
            raise UsageError(f"Environment does not have key: {name}")
        else:
            return os.environ[name]

    def _reset(self, rest: str) -> None:
        del rest
        for name in [name for name in self._namespace if not name.startswith("__")]:
            del self._namespace[name]

    def _run(self, rest: str) -> None:
        """Runs a script and copies its globals; prints its errors, as IPython does."""
        words = shlex.split(rest)
        options = set()
        while words and words[0] in ("-e", "-G", "-i", "-m", "-n"):
            options.add(words.pop(0))
        if not words or words[0].startswith("-"):
            raise _NotDoneError
        found = locating.module(words[0]).path if "-m" in options else words[0]
        path = next((p for p in (found, f"{found}.py") if os.path.isfile(p)), None)
        if path is None:
            raise FileNotFoundError(f"File `{found!r}` not found.")
        if is_notebook(path):
            self._notebook(path)
            return
        name = pathlib.Path(path).stem if "-n" in options else "__main__"
        module = types.ModuleType(name)
        module.__dict__.update(
            self._namespace if "-i" in options else {}, __file__=os.path.abspath(path)
        )
        module.__dict__["__name__"] = name
        try:
            with _as_program(module, [path, *map(os.path.expanduser, words[1:])]):
                _execute(module, self._commands.imports)
        except SystemExit as error:
            if error.code:
                print(f"SystemExit: {error.code}", file=sys.stderr)
        except Exception as error:
            shown = error.__traceback__.tb_next if error.__traceback__ else None
            traceback.print_exception(error.with_traceback(shown and shown.tb_next))
        own = {n: v for n, v in vars(module).items() if not re.fullmatch("__.*__", n)}
        self._namespace.update(own)


def is_skipped(magic: Magic) -> bool:
    """Whether a magic only shows, times, or installs something, so that the run can skip it.

    A magic without `%` may be a variable, which is decided when it runs; installing is skipped.
    """
    word = magic.text.split()[0]
    helps = word.startswith("?") or word.endswith("?")
    shows = not magic.automatic and _SKIPPED.fullmatch(word) is not None
    return not magic.assigned and (shows or helps or INSTALLS.match(magic.text) is not None)


def _write(rest: str, body: str) -> None:
    *options, name = shlex.split(rest)
    path, appends = pathlib.Path(name).expanduser(), bool({"-a", "--append"} & set(options))
    doing = ("Appending to" if appends else "Overwriting") if path.exists() else "Writing"
    print(doing, path)
    with open(path, "a" if appends else "w", encoding="utf-8") as file:
        file.write(f"{body}\n")


@contextlib.contextmanager
def _as_program(module: types.ModuleType, argv: list[str]) -> Iterator[None]:
    """Sets argv, sys.path and the module as `python SCRIPT` does, while `%run` runs a script."""
    name = module.__name__
    before = sys.argv, sys.path[:], sys.modules.get(name)
    sys.argv, sys.modules[name] = argv, module
    sys.path.insert(0, os.path.dirname(os.path.abspath(argv[0])))
    try:
        yield
    finally:
        sys.argv, sys.path[:], main = before
        del sys.modules[name]
        if main is not None:
            sys.modules[name] = main


def _execute(module: types.ModuleType, imports: LegacyImports) -> None:
    path = str(module.__file__)
    source = pathlib.Path(path).read_bytes()
    found = compiling.compiled(source, path, numpy=imports.numpy)
    imports.prepare(module.__dict__, imports.judge(found), found.python_2)
    exec(found.code, module.__dict__)


def _inserted(text: str, namespace: dict[str, Any], local: Mapping[str, Any]) -> str:
    """A line with the values of `{expression}` and `$name` inserted, if they have values.

    Names in single quotes stay; `$$name` is left to the shell as `$name`.
    """

    def value(found: re.Match[str]) -> str:
        if found[0].startswith("$$"):
            return found[0][1:]
        try:
            return str(eval(found[1] or found[2], namespace, local))
        except Exception:  # as in IPython, it is left to the shell
            return found[0]

    return _INSERTED.sub(value, text)


def _script_options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--out")
    parser.add_argument("--err")
    parser.add_argument("--proc")
    parser.add_argument("--bg", action="store_true")
    parser.add_argument("--no-raise-error", action="store_false", dest="raise_error")
    return parser


_SCRIPT_OPTIONS = _script_options()

_LINES: dict[str, Callable[[Magics, str], Any]] = {
    "cd": Magics._cd,
    "env": Magics._env,
    "popd": Magics._popd,
    "pushd": Magics._pushd,
    "pwd": lambda magics, rest: os.getcwd(),
    "reset": Magics._reset,
    "run": Magics._run,
    "set_env": Magics._env,
}
"""Line magics that are not shell commands; each takes the text after its name."""
