"""A disk that loses power: of the files of a folder, only what was fsynced is left."""

import contextlib
import os
import pathlib
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

NAMES = ("synced", "all", "checkpoint", "removed")
"""Names on the disk: those fsynced; all; those fsynced and the list of checkpoints; those fsynced
that were not removed since."""


class Moment(NamedTuple):
    """What a disk holds at one time.

    Attributes:
      named: name to number of the files that are in the folder.
      synced_names: the same when the folder was fsynced last.
      contents: number of a file to its bytes when it was fsynced last.
    """

    named: dict[str, int]
    synced_names: dict[str, int]
    contents: dict[int, bytes]

    def left(self, folder: pathlib.Path, *, names: str) -> pathlib.Path:
        """Makes a folder as it is found after the power failed at this moment.

        What was not fsynced may have reached the disk all the same, in any order.

        Args:
          names: one of `NAMES`, those that had reached the disk.
        """
        synced = self.synced_names
        left = {
            "synced": synced,
            "all": self.named,
            "checkpoint": synced | {k: v for k, v in self.named.items() if k == "checkpoint"},
            "removed": {k: v for k, v in synced.items() if k in self.named},
        }
        folder.mkdir()
        for name, number in left[names].items():
            (folder / name).write_bytes(self.contents.get(number, b""))
        return folder


class Disk:
    """Records the files of a folder, its subfolders left out, at each fsync in this process."""

    def __init__(self, folder: pathlib.Path):
        self.moments: list[Moment] = []
        self._folder = folder
        self._contents: dict[int, bytes] = {}
        self._names: dict[str, int] = {}
        self._open: list[int] = []  # keeps numbers of files from being given anew
        self._lock = threading.Lock()

    def fsync(self, descriptor: int) -> None:
        with self._lock:
            self._record()
            path = pathlib.Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            if path == self._folder:
                self._names = self._listed()
            elif path.is_file():
                self._open.append(os.dup(descriptor))
                self._contents[os.fstat(descriptor).st_ino] = path.read_bytes()
            self._record()

    def _record(self) -> None:
        self.moments.append(Moment(self._listed(), self._names, dict(self._contents)))

    def _listed(self) -> dict[str, int]:
        with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            return {e.name: e.stat().st_ino for e in entries if e.is_file()}
        return {}

    @contextlib.contextmanager
    def recorded(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", self.fsync)
            yield
        self._record()
        for descriptor in self._open:
            os.close(descriptor)
