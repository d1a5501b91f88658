"""The places of modules in a searched tree.

They are found as Python finds them, in the folders that may be in `sys.path`: that of the module
that imports, those above it, and a `src` in one of these.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Sequence

_PACKAGE = "__init__.py"


class Places:
    """The modules among files; the place of one is its file, or its folder.

    Args:
      files: absolute paths.
    """

    def __init__(self, files: Iterable[str]):
        self._files = frozenset(files)
        self._folders: set[str] = set()
        for folder in map(os.path.dirname, self._files):
            while folder not in self._folders:
                self._folders.add(folder)
                folder = os.path.dirname(folder)
        self.of = functools.cache(self._of)
        """`of(folder, module)`: where a file in a folder finds `a.b` or `..a.b`, or None."""

    @property
    def tops(self) -> frozenset[str]:
        """The names of files and folders: a module with another first name is in none of them."""
        parts = (part for path in self._files for part in path.split(os.sep))
        return frozenset(part.removesuffix(".py") for part in parts)

    def source(self, place: str) -> str:
        """The file with the names of a module; the place itself if there is no other."""
        package = os.path.join(place, _PACKAGE)
        return package if package in self._files else place

    def inside(self, place: str, name: str) -> str | None:
        """The place of a module in a package or folder; None if there is none."""
        path = os.path.join(place, name)
        if self.source(path) == path and f"{path}.py" in self._files:
            return f"{path}.py"
        return path if path in self._folders else None

    def _of(self, folder: str, module: str) -> str | None:
        names = [name for name in module.split(".") if name]
        level = len(module) - len(module.lstrip("."))
        if level:
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            return self._below(folder, names)
        found = [place for start in self._path(folder) if (place := self._below(start, names))]
        # Python takes a folder without __init__.py only if there is nothing else.
        return min(found, key=lambda place: self.source(place) in self._folders, default=None)

    def _path(self, folder: str) -> Iterator[str]:
        """Where a file in a folder may find modules; packages last, where only scripts do."""
        above = [folder]
        while above[-1] != os.path.dirname(above[-1]):
            above.append(os.path.dirname(above[-1]))
        for start in sorted(above, key=lambda folder: self.source(folder) != folder):
            yield from (start, os.path.join(start, "src"))

    def _below(self, place: str | None, names: Sequence[str]) -> str | None:
        for name in names:
            place = place and self.inside(place, name)
        return place if place in self._folders or place in self._files else None
