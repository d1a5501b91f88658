"""The files to search, and their text."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import fnmatch
import io
import os
import pathlib
import tokenize
from collections.abc import Iterable, Iterator

_ENDINGS = (".py", ".ipynb")
_NAMED_ENDINGS = (*_ENDINGS, ".pyw", "")
_SKIPPED = {"__pycache__", "build", "dist", "node_modules", "site-packages"}


class CannotRead(Exception):
    """A file whose text cannot be read; says why, and what to do."""


class NoFiles(Exception):
    """A path without files to search; says why."""


@dataclasses.dataclass(frozen=True)
class FileText:
    """The text of a Python file or a notebook, which can be written back byte for byte.

    Attributes:
      text: with its own line endings, and without a byte order mark.
      encoding: as the file declares it; `utf-8` if it does not.
      bom: whether it begins with a byte order mark.
    """

    text: str
    encoding: str = "utf-8"
    bom: bool = False

    def to_bytes(self) -> bytes:
        return (codecs.BOM_UTF8 if self.bom else b"") + self.text.encode(self.encoding)


def python_files(paths: Iterable[str], exclude: Iterable[str] = ()) -> Iterator[str]:
    """The files to search, each once, in order.

    Args:
      paths: files of Python (`*.py`, without an ending, or with `#!` and a Python in the first
        line), notebooks (`*.ipynb`), and folders, whose `*.py` and `*.ipynb` are taken. Below a
        folder, hidden folders, `build`, `dist` and virtual environments are left out.
      exclude: patterns of `fnmatch` for files and folders to leave out below folders, against their
        name and against their path.

    Raises:
      NoFiles: there is no such path, it is a file of another kind, or a folder without such files.
    """
    patterns = list(exclude)
    seen = set()
    for path in paths:
        for file in _at(path, patterns):
            key = os.path.realpath(file)
            if key not in seen:
                seen.add(key)
                yield file


def read(path: str) -> FileText:
    """A file's text; CannotRead unless it is text in the encoding that it declares."""
    try:
        data = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise CannotRead(f"The file cannot be read: {error.strerror}.") from error
    if b"\0" in data:
        raise CannotRead("The file has null bytes: it is not Python source.")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise CannotRead(
            f"{str(error).capitalize()}. Save it as UTF-8, or declare its encoding in its first "
            "line: # -*- coding: latin-1 -*-"
        ) from error
    bom = data.startswith(codecs.BOM_UTF8)
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CannotRead(
            f"Line {line} is not {encoding}. Save the file as UTF-8, or declare its encoding in "
            "its first line: # -*- coding: latin-1 -*-"
        ) from error
    return FileText(text, encoding, bom)


def _at(path: str, patterns: list[str]) -> list[str]:
    if not os.path.exists(path):
        raise NoFiles(f"There is no file or folder {path!r} in {os.getcwd()!r}.")
    if os.path.isdir(path):
        files = list(_below(path, patterns))
        if not files:
            left = " that --exclude leaves" if patterns else ""
            raise NoFiles(f"There are no Python files and no notebooks{left} in {path!r}.")
        return files
    if os.path.splitext(path)[1].lower() not in _NAMED_ENDINGS and not _starts_python(path):
        raise NoFiles(
            f"{path!r} is neither a Python file (*.py) nor a notebook (*.ipynb). Nothing else is "
            "read."
        )
    return [path]


def _starts_python(path: str) -> bool:
    """Whether the first line of a file names a Python to run it."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        line = file.readline(200)
        return line.startswith(b"#!") and b"python" in line
    return False


def _below(folder: str, patterns: list[str]) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not _is_skipped(parent, name) and not _matches(parent, name, patterns)
        )
        for name in sorted(files):
            if name.endswith(_ENDINGS) and not _matches(parent, name, patterns):
                yield os.path.join(parent, name)


def _is_skipped(parent: str, name: str) -> bool:
    is_environment = os.path.exists(os.path.join(parent, name, "pyvenv.cfg"))
    return name.startswith(".") or name in _SKIPPED or is_environment


def _matches(parent: str, name: str, patterns: list[str]) -> bool:
    path = os.path.normpath(os.path.join(parent, name))
    return any(
        fnmatch.fnmatch(name, p.rstrip("/"))
        or fnmatch.fnmatch(path, p.rstrip("/"))
        or fnmatch.fnmatch(path, f"*/{p.rstrip('/')}")
        for p in patterns
    )
