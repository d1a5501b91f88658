"""Shows the change of a file's text as a diff, and writes it atomically."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import io
import os
from collections.abc import Iterable, Iterator

from tpu_estimator_compat.engine.files import removal
from tpu_estimator_compat.tools import regular_file
from tpu_estimator_compat.tools.reports.sources import printable
from tpu_estimator_compat.tools.scan.files import FileText
from tpu_estimator_compat.tools.scan.findings import ScanFinding

_STYLES = {"--- ": "bold", "+++ ": "bold", "-": "red", "+": "green", "@@": "cyan"}
_NO_NEWLINE = "\\ No newline at end of file\n"


@dataclasses.dataclass(frozen=True)
class Rewriting:
    """The result of migrating a file, to be written.

    Attributes:
      after: the new text, perhaps the same.
      report: the findings to change by hand, and those that differ.
      difference: lines of a unified diff.
    """

    source: FileText
    after: str
    report: list[ScanFinding]
    mended: int
    difference: list[str]


def difference(before: str, after: str, file: str) -> list[str]:
    """The lines of the diff, which `patch` and `git apply` accept."""
    old, new = (io.StringIO(text, newline="").readlines() for text in (before, after))
    name = file.removeprefix("./").lstrip("/")
    names = _quoted(f"a/{name}"), _quoted(f"b/{name}")
    return list(_ended(difflib.unified_diff(old, new, *names)))


def shown(difference: Iterable[str], *, color: bool, terminal: bool) -> str:
    """The diff as text; for a terminal, without characters that could steer it."""
    safe = [printable(line[:-1]) + "\n" for line in difference] if terminal else difference
    return "".join(map(_colored, safe) if color else safe)


def _quoted(name: str) -> str:
    if name.isprintable() and not any(sign in name for sign in '"\\'):
        return name
    signs = (
        chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03o}" for b in os.fsencode(name)
    )
    return f'"{"".join(signs)}"'


def _ended(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if line.endswith("\n"):
            yield line
        else:
            yield f"{line}\n"
            yield _NO_NEWLINE


def _colored(line: str) -> str:
    from tpu_estimator_compat.tools.reports.terminal import styled

    for sign, style in _STYLES.items():
        if line.startswith(sign):
            return styled(line[:-1], style) + "\n"
    return line


def is_below(path: str, roots: Iterable[str]) -> bool:
    """Whether a path, with its links followed, is one of some paths or below one."""
    target = os.path.realpath(path)
    return any(os.path.commonpath([target, root]) == root for root in map(os.path.realpath, roots))


def write(path: str, source: FileText, text: str) -> None:
    """Replaces a file's text; all else stays: encoding, owner, mode, attributes, links to it.

    A symbolic link stays: its target is replaced. After an OSError the file is unchanged, for
    example where a new file cannot have all of that.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    if not os.access(target, os.W_OK):
        raise PermissionError(f"{path} is write-protected.")
    before, data = source.to_bytes(), dataclasses.replace(source, text=text).to_bytes()
    if regular_file.read(target, len(before)) != before:
        raise OSError("it has changed since it was read")
    temporary = os.path.join(folder, f".{name[:99]}.new-{os.urandom(4).hex()}")
    try:  # the name is known before the file is made, so that a signal leaves none
        with open(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if not _can_stand_for(temporary, target):
            raise OSError(
                "it has several hard links, or an owner or attributes that a new file cannot have. "
                "Put a copy of yours in its place first"
            )
        os.replace(temporary, target)
    except BaseException:
        removal.remove(temporary, "unfinished")
        raise


def _can_stand_for(new: str, old: str) -> bool:
    """Copies owner, mode and attributes to a new file; whether it can replace the old one."""
    known = os.stat(old)
    attributes = _attributes(old)
    with contextlib.suppress(OSError):
        os.chown(new, known.st_uid, known.st_gid)
        os.chmod(new, known.st_mode & 0o7777)
        for name, value in attributes.items():
            os.setxattr(new, name, value)
    made = os.stat(new)
    same = all(getattr(made, x) == getattr(known, x) for x in ("st_uid", "st_gid", "st_mode"))
    return same and known.st_nlink == 1 and _attributes(new) == attributes


def _attributes(path: str) -> dict[str, bytes]:
    try:
        return {name: os.getxattr(path, name) for name in os.listxattr(path)}
    except OSError:  # the file system has none
        return {}
