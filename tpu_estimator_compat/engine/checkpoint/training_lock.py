"""The lock of a model_dir, to which one training at a time writes; a second one warns."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.checkpoint.saving import remove_unfinished
from tpu_estimator_compat.engine.files import user_files


@contextlib.contextmanager
def training_in(model_dir: str | None, *, makes: bool = False) -> Iterator[None]:
    """Locks `model_dir` while a training writes to it; removes unfinished files of killed ones.

    With `makes`, a missing folder is made first, so that it can be locked. If another training of
    this machine holds the lock, this one warns, and removes nothing. The lock is on the folder
    itself, not on a file in it. It ends with the training, or with its process and all forks of
    that process.
    """
    with contextlib.ExitStack() as stack:
        if model_dir and user_files.is_local(model_dir):
            model_dir = user_files.local(model_dir)
        if model_dir and makes:
            tf.io.gfile.makedirs(model_dir)
        if model_dir and not _locked(model_dir, stack):
            logging.warning(
                "Another training writes to model_dir %s: %s. Each would overwrite and delete "
                "checkpoints of the other. End one of them, or give it a model_dir of its own.",
                model_dir,
                _holder(model_dir),
            )
        elif model_dir:
            remove_unfinished(model_dir)
        yield


def _locked(model_dir: str, stack: contextlib.ExitStack) -> bool:
    """Takes the lock; False if another process has it. True where the file system has no locks."""
    if not user_files.is_local(model_dir) or not os.path.isdir(model_dir):
        return True
    descriptor = os.open(model_dir, os.O_RDONLY)
    stack.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        stack.callback(fcntl.flock, descriptor, fcntl.LOCK_UN)  # forks keep it open after os.close
    except BlockingIOError:
        return False
    except OSError:  # such as NFS, for a folder
        pass
    return True


def _holder(model_dir: str) -> str:
    described = os.stat(model_dir)
    inode, device = str(described.st_ino), described.st_dev
    file = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
    with contextlib.suppress(OSError, ValueError), open("/proc/locks") as locks:
        held = {w[5]: int(w[4]) for w in map(str.split, locks) if w[1] == "FLOCK"}
        # Some file systems have other device numbers in /proc/locks.
        others = [number for name, number in held.items() if name.endswith(f":{inode}")]
        if number := held.get(file) or next(iter(others), None):
            return _process(number)
    return "a process that this one does not see"


def _process(number: int) -> str:
    if number == os.getpid():
        return "this process itself"
    with open(f"/proc/{number}/cmdline", "rb") as file:
        command = file.read(300).replace(b"\0", b" ").decode(errors="replace").strip()
    return f"process {number} ({command})"
