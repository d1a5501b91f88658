"""Files that spare work already done: where they are, how they are written, and how many are kept.

It needs no TensorFlow.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import pathlib
import stat
import tempfile

from tpu_estimator_compat import environment

_KINDS = ("jax", "preflight")


def directory(name: str) -> pathlib.Path:
    """The folder of cached files of one of `_KINDS`: under $XDG_CACHE_HOME, or ~/.cache."""
    if name not in _KINDS:
        raise AssertionError(f"{name!r} is none of {_KINDS}, whose size is limited.")
    return root() / name


def root() -> pathlib.Path:
    """This package's place in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # as the XDG specification has it
        base = os.path.expanduser("~/.cache")
    return pathlib.Path(base, "tpu_estimator_compat")


def write(path: pathlib.Path, content: bytes) -> None:
    """Writes a file that appears whole, if its directory can be written to; then see `trim`.

    The file begins with a line that has the SHA-256 of the content.
    """
    # A cache that cannot be written to costs time, nothing else.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_digest(content) + b"\n" + content)
            os.replace(partial, path)
        except BaseException:
            os.unlink(partial)
            raise
    if path.is_relative_to(root()):
        trim()


def read(path: pathlib.Path) -> bytes | None:
    """The content of a file that `write` made; None where there is none.

    A damaged file, such as a machine that lost its power leaves, is deleted; a line in the log says
    so.
    """
    try:
        content = _content(path)
    except OSError:
        return None
    if content is None:
        logging.getLogger("tensorflow").warning(
            "Deleting %s, which is damaged; making it anew.", path
        )
        with contextlib.suppress(OSError):
            path.unlink()
    return content


def is_whole(path: pathlib.Path) -> bool:
    """Whether a file is as `write` made it, or is gone."""
    try:
        return _content(path) is not None
    except FileNotFoundError:
        return True


def _content(path: pathlib.Path) -> bytes | None:
    """None where the digest is another's."""
    digest, _, content = path.read_bytes().partition(b"\n")
    return content if digest == _digest(content) else None


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def trim() -> None:
    """Deletes the files that were not used for longest, until the others fit the limit.

    It holds for all kinds together, JAX's own files among them; see `environment.cache_limit`.

    Raises:
      ValueError: the limit is none.
    """
    limit = environment.cache_limit()
    found = []
    for kind in _KINDS:
        for path in directory(kind).rglob("*"):
            with contextlib.suppress(OSError):  # another process has deleted it
                described = path.lstat()
                if stat.S_ISREG(described.st_mode):
                    # Most systems note a reading once a day at least; a writing always.
                    used = max(described.st_atime, described.st_mtime)
                    found.append((used, described.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size
