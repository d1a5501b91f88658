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
_RANDOM = "[a-z0-9_]{8}"  # of the module tempfile
_POSITION = r"\.input-00000-of-00001"
_SCHEME = re.compile(r"([a-zA-Z][0-9a-zA-Z.]*)://")

KINDS = {
    # In a model_dir. Earlier releases gave folders of unfinished checkpoints without a token.
    "save": re.compile(rf"\.(?P<checkpoint>.+-\d+({_POSITION})?)\.unfinished(-{TOKEN})?"),
    "list": re.compile(r"(checkpoint(_\w+)?|graph\.pbtxt|.+-\d+\.meta)(\.tmp[0-9a-f]{32}){1,2}"),
    "position": re.compile(
        rf"(?P<checkpoint>model\.ckpt-\d+){_POSITION}\.(index|data-00000-of-00001)"
    ),
    # Beside a file or folder that is being written or replaced.
    "unfinished": re.compile(rf".+\.(unfinished|part|shards|new)-{TOKEN}"),
    "replaced": re.compile(rf".+\.replaced-{TOKEN}"),
    # Exports, where an exporter or this call made them.
    "temporary export": re.compile(r"temp-\d{10}"),
    "export": re.compile(r"\d{10}"),
    # In the cache, whose folders have no other files.
    "cached": re.compile(r".+"),
    "environment": re.compile(rf"parity-tf[\d.]+-py[\d.]+(-{TOKEN})?"),
    # What the module tempfile named, and the folder of `doctor`.
    "temporary": re.compile(rf".*{_RANDOM}", re.DOTALL),
    "probe": re.compile(r"doctor_[0-9a-f]{12}"),
}
"""The names that may be deleted, without their folders, by kind."""


def named(path: str | os.PathLike[str], kind: str) -> re.Match[str] | None:
    """The match of a path's last part, where that is a name of the kind."""
    return KINDS[kind].fullmatch(os.path.basename(os.fspath(path)))


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


def remove_empty(folder: str | os.PathLike[str]) -> None:
    """Deletes a folder that this process has made; OSError if there is something in it."""
    os.rmdir(folder)


def is_local(path: str) -> bool:
    """Whether a path is none of a file system that TensorFlow knows by a scheme, such as gs://."""
    found = _SCHEME.match(path)
    if not found:
        return True
    import tensorflow as tf

    return found[1] not in tf.io.gfile.get_registered_schemes()


def local(path: str) -> str:
    """A local path as TensorFlow reads it: `a/../b` is `b`, even if `a` is a link or missing."""
    return os.path.normpath(path) if path else "."


def is_link(path: str) -> bool:
    return is_local(path) and os.path.islink(local(path))
