"""A searched tree: follows names of TensorFlow from the modules that import them to their users."""

from __future__ import annotations

import collections
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tpu_estimator_compat.old_names.legacy.dialect import Dialect, evidence_of_v1, is_only_in
from tpu_estimator_compat.old_names.legacy.references import LIKE_TENSORFLOW, Reference
from tpu_estimator_compat.tools.scan.files import CannotRead
from tpu_estimator_compat.tools.scan.findings import ScanFinding, Status, unreadable
from tpu_estimator_compat.tools.scan.links import Links
from tpu_estimator_compat.tools.scan.module import Scanned, means_1
from tpu_estimator_compat.tools.scan.places import Places
from tpu_estimator_compat.tools.scan.verdict import verdict


class _Meaning(NamedTuple):
    """A path of TensorFlow, the names that follow it, and the file that imports it.

    If `path` is empty, it is not known what the first name is in `home`: a file, or a module that
    is not in the tree.
    """

    path: str
    names: Sequence[str]
    home: str


class Tree:
    """The files of a search, and the links between their modules.

    Attributes:
      near: names with which the modules of the tree begin.
      links: the links of each file, by its path as given.
      unread: the files that could not be read.
    """

    def __init__(self, files: Iterable[str]):
        self._files = {os.path.abspath(file): file for file in files}
        self._places = Places(self._files)
        self.near = self._places.tops
        self.links: dict[str, Links] = {}
        self._scanned: dict[str, Scanned] = {}
        self.unread: set[str] = set()
        self._leading: set[str] = set()
        self._users: dict[str, dict[str, tuple[Any, Reference]]] = collections.defaultdict(dict)

    def search(self, read: Callable[..., Scanned]) -> None:
        """Scans all files: `read` scans one, by itself or with links, or raises CannotRead."""
        for path in self._files:
            self._scan(path, read)
        self._note_leading()
        taken = {path: self._taken(path) for path in self._files}
        means = {path: self._means_1(path) for path in self._users}
        bare = {p: Dialect.V1 if means.get(p) else s.bare for p, s in self._scanned.items()}
        for path, (brought, unknown) in taken.items():
            with_bare = {
                key: [(p, bare[home]) for p, home in sorted(brought[key])] for key in brought
            }
            said = [(r.base, verdict(r, bare[path])) for _, r in self._users[path].values()]
            used = frozenset(base for base, of in said if of and of.target)
            links = Links(with_bare, unknown, used, means.get(path, ""))
            self.links[self._files[path]] = links
            if links.means_1:
                self._scan(path, read, links)

    def findings(self, file: str) -> list[ScanFinding]:
        """The findings of a file, by its path as given, in the order of its lines."""
        scanned = self._scanned[os.path.abspath(file)]
        found = {*scanned.findings, *self.links[file].findings(file, scanned.uses)}
        return sorted(found, key=lambda f: (f.cell, f.line, f.column, f.name))

    def _scan(self, path: str, read: Callable[..., Scanned], *links: Links) -> None:
        file = self._files[path]
        try:
            self._scanned[path] = read(file, *links)
        except CannotRead as error:
            self._scanned[path] = Scanned([unreadable(file, error)])
            self.unread.add(file)

    def _note_leading(self) -> None:
        """Notes the names that may lead to TensorFlow in any module: most uses have none."""
        names = [item for scanned in self._scanned.values() for item in scanned.names.items()]
        before = -1
        while before != len(self._leading):
            before = len(self._leading)
            self._leading.update(name for name, paths in names if any(map(self._may_lead, paths)))

    def _may_lead(self, path: str) -> bool:
        _, is_open, names = path.partition(":")
        like = LIKE_TENSORFLOW.fullmatch
        return not is_open or any(n in self._leading or like(n) for n in names.split("."))

    def _taken(self, path: str) -> tuple[dict[str, set[tuple[str, str]]], dict[str, str]]:
        """What a file's open paths are: paths of TensorFlow with their homes; unknown, and why."""
        brought: dict[str, set[tuple[str, str]]] = collections.defaultdict(set)
        unknown: dict[str, str] = {}
        for use in self._scanned[path].uses:
            if not any(map(self._may_lead, use.paths)):
                continue
            found = [(o, m) for o in use.paths for m in self._meanings(path, o, set())]
            is_known = use.known or any(meaning.path for _, meaning in found)
            for open_path, meaning in found:
                base, names, home = meaning
                if base:
                    brought[open_path.rsplit(".", len(names))[0]].add((base, home))
                    reference = use.reference(".".join([base, *names]), base)
                    user = (self._files[path], *use.places[0]), reference
                    self._users[home].setdefault(reference.path, user)
                elif not is_known:
                    unknown.update(self._unknown(open_path, meaning))
        return brought, unknown

    def _unknown(self, open_path: str, meaning: _Meaning) -> Iterator[tuple[str, str]]:
        """The start of an open path that has a name like TensorFlow's, and why it is unknown."""
        _, names, home = meaning
        is_here = os.path.isabs(home)
        for number, name in enumerate(names[:1] if is_here else names, 1):
            following = names[number:]
            is_v1 = name != "v1" or is_only_in(Dialect.V1, ".".join(following))
            if LIKE_TENSORFLOW.fullmatch(name) and is_v1:
                here = f"{self._files.get(home, home)}, where no import says what it is: look"
                away = f"{home}, which is not here: search its file, too, or look"
                said = f"{name} comes from {here if is_here else away} at its uses by hand."
                yield open_path.rsplit(".", len(following))[0], said
                return

    def _means_1(self, path: str) -> str:
        """Why a file means TensorFlow 1, if only its users show that; else empty."""
        users = self._users[path]
        evidence = evidence_of_v1(reference for _, reference in users.values())
        if evidence is None or self._scanned[path].bare is Dialect.V1:
            return ""
        if is_only_in(Dialect.V1, evidence.base.partition(".")[2]):
            return ""  # it shows no more than the import of its base
        file, line, column, cell = users[evidence.path][0]
        place = ScanFinding(file, line, column, "", Status.WORKS, cell=cell).place
        return f"{means_1(evidence, place)} `run` may need --behavior v1 to see that."

    def _meanings(
        self, path: str, open_path: str, seen: set[tuple[str, str]]
    ) -> Iterator[_Meaning]:
        """What an open path of a file refers to; `seen` ends circles of imports."""
        if (path, open_path) in seen:
            return
        seen.add((path, open_path))
        module, _, attributes = open_path.partition(":")
        names = attributes.split(".")[1:]
        place = self._places.of(os.path.dirname(path), module)
        if place is None and names:
            yield _Meaning("", names, module)
        while place is not None and names:
            name, *following = names
            source = self._places.source(place)
            given = self._scanned[source].names if source in self._files else {}
            inside = self._places.inside(place, name)
            if inside is not None and name not in given:
                place, names = inside, following
                continue
            paths = given.get(name) or [f"{star}.{name}" for star in given.get("*", ())]
            for found in paths:
                if ":" in found:
                    yield from self._meanings(source, ".".join([found, *following]), seen)
                else:
                    yield _Meaning(found, following, source)
            if not paths:
                yield _Meaning("", names, source)
            return
