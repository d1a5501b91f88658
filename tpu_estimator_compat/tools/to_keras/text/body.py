"""The body of a class: its members and statements, in which names are still tokens."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from tpu_estimator_compat.tools.to_keras.author import assigned_name
from tpu_estimator_compat.tools.to_keras.classes import Part
from tpu_estimator_compat.tools.to_keras.graph import Node
from tpu_estimator_compat.tools.to_keras.literals import literal

TOKEN = re.compile(r"\b[vmf]_\d{6}\b")


@dataclasses.dataclass(eq=False)
class Member:
    """What a class makes in its constructor: a layer, an object of a class of the file, a weight.

    Attributes:
      token: stands for its name.
      name: what it may be called.
      cls: "layers.Dense", "add_weight", or a class of the file.
      things: the layer, weight or part itself; several for a list.
      arguments: of each thing, those of its constructor by name.
      positional: how many of them are written without a name.
      built: the input's shape, of a layer whose weights are read before its first call.
    """

    token: str
    name: str
    cls: Any
    things: list[Any]
    arguments: list[dict[str, Any]]
    positional: int = 0
    built: tuple[int | None, ...] | None = None

    @property
    def varying(self) -> list[str]:
        """The arguments that differ among the elements of a list."""
        rows = [{k: literal(v) for k, v in given.items()} for given in self.arguments]
        return [name for name in rows[0] if any(row[name] != rows[0][name] for row in rows)]

    @property
    def elements(self) -> tuple[Any, ...]:
        """What differs among the elements of a list."""
        rows = [tuple(given[name] for name in self.varying) for given in self.arguments]
        return tuple(row[0] if len(row) == 1 else row for row in rows)


@dataclasses.dataclass
class Statement:
    """A statement.

    Attributes:
      lines: its code.
      targets: the tokens of the values or the function that it makes.
      start: of a loop, what its target is before.
      params, inner: of a local function, its parameters and statements.
    """

    lines: list[str]
    targets: list[str] = dataclasses.field(default_factory=list)
    start: str = ""
    params: list[str] = dataclasses.field(default_factory=list)
    inner: list[Statement] = dataclasses.field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [self.start, *self.lines]

    def all(self, depth: int = 0) -> Iterator[tuple[int, Statement]]:
        """Itself and what is within, each with how far it is indented."""
        yield depth, self
        for each in self.inner:
            yield from each.all(depth + 1)

    def tokens(self) -> list[str]:
        """What it names, makes and takes, but for the members."""
        lines = [line for _, each in self.all() for line in each.texts]
        found = dict.fromkeys(token for line in lines for token in TOKEN.findall(line))
        return [token for token in found if token[0] != "m"]


@dataclasses.dataclass
class Body:
    """Of one class: `params` are the call's, `hints` what a token's value may be called.

    `taken` has names that its texts use already.
    """

    part: Part
    taken: set[str] = dataclasses.field(default_factory=set)
    params: list[str] = dataclasses.field(default_factory=list)
    members: list[Member] = dataclasses.field(default_factory=list)
    statements: list[Statement] = dataclasses.field(default_factory=list)
    hints: dict[str, str] = dataclasses.field(default_factory=dict)

    def all(self) -> list[tuple[int, Statement]]:
        return [each for statement in self.statements for each in statement.all()]


def is_like(name: str, cls: Any) -> bool:
    """Whether a name says no more than the class."""
    return name.replace("_", "") in str(cls).split(".")[-1].lower()


def indexed(path: str) -> str:
    """A path of attributes as Python writes it: `blocks[0].kernel`."""
    return re.sub(r"\.(\d+)", r"[\1]", path)


def hint_of_place(item: Node) -> str:
    """The variable to which the author's line gives an operation's value."""
    return assigned_name(item.place).lower()
