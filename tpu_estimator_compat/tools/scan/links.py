"""What a module has from the other modules of a searched tree, and they from it."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tpu_estimator_compat.old_names.legacy.dialect import Dialect
from tpu_estimator_compat.old_names.legacy.references import Form, Reference
from tpu_estimator_compat.tools.scan.findings import ScanFinding, Status
from tpu_estimator_compat.tools.scan.verdict import Verdict, verdict

Place = tuple[int, int, int]
"""Line, column and cell, as in findings."""

_NODE = ast.Constant(None)


@dataclasses.dataclass(frozen=True)
class Use:
    """The uses of a name that comes by another module.

    Attributes:
      paths: what it may refer to: open paths, as in `references`.
      known: whether it may also refer to TensorFlow that the module imports itself.
    """

    form: Form
    paths: tuple[str, ...]
    known: bool
    places: list[Place]

    def reference(self, path: str, base: str = "") -> Reference:
        return Reference(path, self.form, _NODE, _NODE, base)


@dataclasses.dataclass(frozen=True, eq=False)
class Links:
    """The links of a module with others; there are none for a module by itself.

    Attributes:
      brought: for open paths, paths of TensorFlow, each with what `tensorflow` means in the module
        that imports it.
      unknown: for open paths that lead nowhere, the reason.
      used: paths of TensorFlow through which other modules use dead names.
      means_1: in words, where another module uses a name that only TensorFlow 1 has.
      near: names with which modules of the tree begin.
    """

    brought: Mapping[str, Sequence[tuple[str, Dialect]]] = dataclasses.field(default_factory=dict)
    unknown: Mapping[str, str] = dataclasses.field(default_factory=dict)
    used: frozenset[str] = frozenset()
    means_1: str = ""
    near: Collection[str] = ()

    def closed(self, reference: Reference) -> list[Reference]:
        """The references to TensorFlow that an open one stands for."""
        start = _start(reference.path, self.brought)
        rest = reference.path.removeprefix(start)
        return [
            dataclasses.replace(reference, path=path + rest, base=path, imported=True, bare=bare)
            for path, bare in self.brought.get(start, ())
        ]

    def findings(self, file: str, uses: Iterable[Use]) -> Iterator[ScanFinding]:
        """The dead names among the uses; what leads nowhere, once."""
        unknown = dict(self.unknown)
        for use in uses if self.brought or unknown else ():
            for path in use.paths:
                for reference in self.closed(use.reference(path)):
                    if said := verdict(reference):
                        yield from (said.at(file, *place) for place in use.places)
                if start := _start(path, unknown):
                    said = Verdict(start.rpartition(".")[2], Status.UNKNOWN, unknown.pop(start))
                    yield said.at(file, *use.places[0])


def _start(path: str, known: Mapping[str, object]) -> str:
    """The longest start of a dotted path that is known; empty if none is."""
    while path and path not in known:
        path = path.rpartition(".")[0]
    return path


ALONE = Links()
