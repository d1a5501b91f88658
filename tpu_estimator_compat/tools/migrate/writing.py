"""Replaces a file's text atomically."""

from __future__ import annotations

import dataclasses
import os
import tempfile

from tpu_estimator_compat.tools.scan import FileText


def write(path: str, source: FileText, text: str) -> None:
    """Replaces a file's text; its encoding, byte order mark and mode stay.

    A link stays a link: its target is replaced. After an OSError the file is unchanged.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    mode = os.stat(target).st_mode
    if not os.access(target, os.W_OK):
        raise PermissionError(f"{path} is write-protected.")
    data = dataclasses.replace(source, text=text).to_bytes()
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode & 0o7777)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
