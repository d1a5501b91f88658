"""Cache files: their place, their format, and the limit of their size. Needs no TensorFlow."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import pathlib
import stat
import tempfile

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.files import removal

_KINDS = ("jax", "preflight")
_PACKAGE = pathlib.Path(__file__).parents[2]


@functools.cache
def sources(package: pathlib.Path = _PACKAGE) -> bytes:
    """A digest of the package's files, for keys: any of them may determine what is kept."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.suffix != ".pyc" and path.is_file():
            digest.update(f"\0{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.digest()


def directory(name: str) -> pathlib.Path:
    if name not in _KINDS:
        raise AssertionError(f"{name!r} is not one of the cache folders {_KINDS}.")
    return root() / name


def root() -> pathlib.Path:
    """The folder of this package's cache: in $XDG_CACHE_HOME, or in ~/.cache.

    Without a home, as in some containers, the folder of temporary files has one per user.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification ignores relative paths
        home = os.environ.get("HOME", "~") and os.path.expanduser("~")
        if not os.path.isabs(home):
            return pathlib.Path(tempfile.gettempdir(), f"tpu_estimator_compat-{os.getuid()}")
        base = os.path.join(home, ".cache")
    return pathlib.Path(base, "tpu_estimator_compat")


def is_private() -> bool:
    """Creates the cache for this user alone; returns whether no other user can write to it.

    The cache holds programs. If another user could have put them there, returns False and warns,
    once per process.
    """
    folder = root()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owners = {folder.lstat().st_uid, folder.stat().st_uid}
        mode = folder.stat().st_mode
        if owners != {os.geteuid()} or mode & (stat.S_IWGRP | stat.S_IWOTH):
            _warn_of_others(folder)
            return False
        if mode & 0o077:
            folder.chmod(0o700)
    except OSError:
        return False
    return True


@functools.cache
def _warn_of_others(folder: pathlib.Path) -> None:
    logging.getLogger("tensorflow").warning(
        "Not using the cache %s, which another user can write to. Programs are compiled anew. Set "
        "XDG_CACHE_HOME to a folder of yours, or remove this one.",
        folder,
    )


def write(path: pathlib.Path, content: bytes) -> None:
    """Writes a file atomically, with the content's SHA-256 as first line; then trims the cache.

    Does nothing where the directory is not writable, or the cache not private.
    """
    in_cache = path.is_relative_to(root())
    if in_cache and not is_private():
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_digest(content) + b"\n" + content)
            os.replace(partial, path)
        except BaseException:
            removal.remove(partial, "cached")
            raise
    if in_cache:
        trim()


def read(path: pathlib.Path) -> bytes | None:
    """The content of a file that `write` made; None if there is none, or the cache is not private.

    Deletes a damaged file, such as one that a power failure left, with a log line.
    """
    if path.is_relative_to(root()) and not is_private():
        return None
    try:
        content = _content(path)
    except OSError:
        return None
    if content is None:
        logging.getLogger("tensorflow").warning(
            "Deleting %s, which is damaged; making it anew.", path
        )
        with contextlib.suppress(OSError):
            removal.remove(path, "cached")
    return content


def is_whole(path: pathlib.Path) -> bool:
    """Whether a file's digest is right; True where the file is gone."""
    try:
        return _content(path) is not None
    except FileNotFoundError:
        return True


def _content(path: pathlib.Path) -> bytes | None:
    """The content; None where the digest is wrong."""
    digest, _, content = path.read_bytes().partition(b"\n")
    return content if digest == _digest(content) else None


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def trim() -> None:
    """Deletes the least recently used files, JAX's too, until all kinds together fit the limit."""
    limit = environment.cache_limit()
    found = []
    for kind in _KINDS:
        if directory(kind).is_symlink():  # its files may be someone else's
            continue
        for path in directory(kind).rglob("*"):
            with contextlib.suppress(OSError):  # another process has deleted it
                described = path.lstat()
                if stat.S_ISREG(described.st_mode):
                    # Most systems update atime once a day at most; mtime always.
                    used = max(described.st_atime, described.st_mtime)
                    found.append((used, described.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            return
        with contextlib.suppress(OSError):
            removal.remove(path, "cached")
            total -= size
