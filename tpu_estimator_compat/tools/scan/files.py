"""The files to search, and their text."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import fnmatch
import io
import os
import tokenize
from collections.abc import Iterable, Iterator

from tpu_estimator_compat.old_names.legacy.notebooks.cells import is_notebook
from tpu_estimator_compat.tools import regular_file

_ENDINGS = (".py", ".ipynb")
_NAMED_ENDINGS = (*_ENDINGS, ".pyw", "")
_MOST, _MOST_OF_NOTEBOOKS = 8 << 20, 64 << 20
"""The most bytes of a file; of a notebook, which contains images."""

_NO_WAY_BACK = "Its encoding, {}, would not give back the same bytes. Save the file as UTF-8."
_SKIPPED = {"__pycache__", "build", "dist", "node_modules", "site-packages"}


class CannotRead(Exception):
    """The text of a file cannot be read; the message has the reason and the remedy."""


class NoFiles(Exception):
    """A path has no files to search; the message has the reason."""


@dataclasses.dataclass(frozen=True)
class FileText:
    """The text of a Python file or a notebook, which can be written back byte for byte.

    Attributes:
      text: the text with the file's line endings, and without a byte order mark.
      encoding: the encoding that the file declares; `utf-8` if it declares none.
    """

    text: str
    encoding: str = "utf-8"
    bom: bool = False

    def check(self) -> None:
        """Raises CannotRead unless the text, encoded and decoded, is the same."""
        with contextlib.suppress(ValueError):
            if self.to_bytes().removeprefix(codecs.BOM_UTF8).decode(self.encoding) == self.text:
                return
        raise CannotRead(_NO_WAY_BACK.format(self.encoding))

    def to_bytes(self) -> bytes:
        return (codecs.BOM_UTF8 if self.bom else b"") + self.text.encode(self.encoding)


def python_files(paths: Iterable[str], exclude: Iterable[str] = ()) -> Iterator[str]:
    """The files to search, each once, in order.

    Args:
      paths: files of Python (`*.py`, without an ending, or with `#!` and a Python in the first
        line), notebooks (`*.ipynb`), and folders, whose `*.py` and `*.ipynb` are taken. Below a
        folder, hidden folders, virtual environments and those of `_SKIPPED` are left out.
      exclude: `fnmatch` patterns of files and folders to leave out below folders, matched with the
        name and with the path.

    Raises:
      NoFiles: a path does not exist, is a file of another kind, or a folder without such files.
    """
    patterns = list(exclude)
    seen = set()
    for path in paths:
        for file in _at(path, patterns):
            key = os.path.realpath(file)
            if key not in seen:
                seen.add(key)
                yield file


def read(path: str, *, to_write: bool = False) -> FileText:
    """A file's text; CannotRead unless it decodes and, if `to_write`, encodes to the same bytes."""
    try:
        data = regular_file.read(path, _MOST_OF_NOTEBOOKS if is_notebook(path) else _MOST)
    except IsADirectoryError:
        raise CannotRead(f"The folder cannot be listed: {_why_unlisted(path)}.") from None
    except OSError as error:
        raise CannotRead(f"The file cannot be read: {error.strerror or error}.") from error
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
    except (LookupError, ValueError) as error:  # of unknown codecs, and of some that make no text
        raise CannotRead(f"It declares the encoding {encoding}: {error}.") from error
    found = FileText(text, encoding, bom)
    if to_write:
        found.check()
        if found.to_bytes() != data:
            raise CannotRead(_NO_WAY_BACK.format(encoding))
    return found


def _why_unlisted(folder: str) -> str:
    try:
        os.listdir(folder)
    except OSError as error:
        return error.strerror or str(error)
    return "it could not be listed earlier"


def _at(path: str, patterns: list[str]) -> list[str]:
    if not os.path.lexists(path):
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
    with contextlib.suppress(OSError):
        regular_file.check(path)
        with open(path, "rb") as file:
            line = file.readline(200)
            return line.startswith(b"#!") and b"python" in line
    return False


def _below(folder: str, patterns: list[str]) -> Iterator[str]:
    """The files below a folder, and folders that cannot be listed: `read` raises their error."""
    waiting = [folder]
    while waiting:
        parent = waiting.pop()
        try:
            with os.scandir(parent) as entries:
                found = sorted(
                    (entry.name, _is_folder(entry), entry.is_symlink()) for entry in entries
                )
        except OSError:
            yield parent
            continue
        kept = [entry for entry in found if not _matches(parent, entry[0], patterns)]
        for name, is_folder, _ in kept:
            if not is_folder and name.endswith(_ENDINGS):
                yield os.path.join(parent, name)
        for name, is_folder, is_link in reversed(kept):
            if is_folder and not is_link and not _is_skipped(parent, name):
                waiting.append(os.path.join(parent, name))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


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
