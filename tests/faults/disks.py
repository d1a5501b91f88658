"""A disk that loses power: of the files of a folder, only what was fsynced is left."""

import contextlib
import os
import pathlib
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest


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

        Args:
          names: "synced" where new names were lost, too; "all" where they had reached the disk
            before what is in the files, as journals of file systems do it.
        """
        folder.mkdir()
        for name, number in (self.synced_names if names == "synced" else self.named).items():
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
