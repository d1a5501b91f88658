"""What this package deletes, and which paths are local: both are decided here. Needs no TensorFlow.

Whatever goes has a name that this package gives (`KINDS`), in a folder that it made or was told to
write to, and nothing goes through a link. All code of the package that deletes calls `remove`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat

TOKEN = "[0-9a-f]{8}"
_INPUT = r"\.input-00000-of-00001"
KINDS = {
    "save": rf"\..+-\d+({_INPUT})?\.unfinished-{TOKEN}",
    "list": r"(checkpoint(_\w+)?|graph\.pbtxt|.+-\d+\.meta)(\.tmp[0-9a-f]{32}){1,2}",
    "position": rf"(?P<checkpoint>model\.ckpt-\d+){_INPUT}\.(index|data-00000-of-00001)",
    "unfinished": rf".+\.(unfinished|part|shards|new)-{TOKEN}",
    "replaced": rf".+\.replaced-{TOKEN}",
    "temporary export": r"temp-\d{10}",
    "export": r"\d{10}",
    "cached": r".+",  # in a folder of the cache, which has nothing else
    "environment": rf"parity-tf[\d.]+-py[\d.]+(-{TOKEN})?",
    "temporary": r"(?s:.*)[a-z0-9_]{8}",  # of the module tempfile
    "probe": r"doctor_[0-9a-f]{12}",
}
"""Patterns of the names that may be deleted, without their folders, by kind."""


def named(path: str | os.PathLike[str], kind: str) -> re.Match[str] | None:
    """The match of a path's last part, where that is a name of the kind."""
    return re.fullmatch(KINDS[kind], os.path.basename(os.fspath(path)))


def remove(path: str | os.PathLike[str], kind: str) -> None:
    """Deletes a file, or a folder with all in it; does nothing where it is gone, or a link.

    A link that this package has moved aside goes itself. Raises AssertionError for a name of
    another kind, OSError or an OpError if the file system refuses.
    """
    path = os.fspath(path)
    if not named(path, kind):
        raise AssertionError(f"{path!r} has no name of the kind {kind!r}, and is not deleted.")
    if not is_local(path):
        import tensorflow as tf

        with contextlib.suppress(tf.errors.NotFoundError):
            folder = tf.io.gfile.isdir(path)
            (tf.io.gfile.rmtree if folder else tf.io.gfile.remove)(path)
        return
    with contextlib.suppress(FileNotFoundError):
        mode = os.lstat(path := local(path)).st_mode
        if stat.S_ISDIR(mode):
            shutil.rmtree(path)
        elif stat.S_ISREG(mode) or kind == "replaced":
            os.unlink(path)


def is_local(path: str) -> bool:
    """Whether a path is none of a file system that TensorFlow knows by a scheme, such as gs://."""
    scheme, sign, _ = path.partition("://")
    if not sign or not scheme.replace(".", "").isalnum():
        return True
    import tensorflow as tf

    return scheme not in tf.io.gfile.get_registered_schemes()


def local(path: str) -> str:
    """A local path as TensorFlow reads it: `a/../b` is `b`, even if `a` is a link or missing."""
    return os.path.normpath(path) if path else "."


def is_link(path: str) -> bool:
    return is_local(path) and os.path.islink(local(path))
