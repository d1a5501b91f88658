"""The body of a class: its members and statements, in which names are still tokens."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from tpu_estimator_compat.tools.to_keras.classes import Part
from tpu_estimator_compat.tools.to_keras.graph import Bound

TOKEN = re.compile(r"\b[vmf]_\d{6}\b")


@dataclasses.dataclass(eq=False)
class Member:
    """What a class makes in its constructor: a layer, an object of a class of the file, a weight.

    Attributes:
      token: stands for its name.
      name: what it may be called.
      cls: "layers.Dense", "add_weight", or a class of the file.
      arguments: of the constructor, by name.
      positional: how many of them are written without a name.
      several: for a list, the arguments of each element.
      bound: of a layer or weight, or of each of the list, what its weights are made of.
      parts: of a class of the file, the part or parts that it is.
    """

    token: str
    name: str
    cls: Any
    arguments: dict[str, Any]
    positional: int = 0
    several: list[dict[str, Any]] | None = None
    bound: list[dict[str, Bound]] = dataclasses.field(default_factory=list)
    parts: list[Part] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Statement:
    """Lines of code, and the tokens of the values they make; `start` is what a loop begins with."""

    lines: list[str]
    targets: list[str] = dataclasses.field(default_factory=list)
    start: str = ""

    def all_lines(self) -> list[str]:
        return [f"{self.targets[0]} = {self.start}", *self.lines] if self.start else self.lines


@dataclasses.dataclass
class Body:
    """Of one class: `params` are the call's, `hints` what a token's value may be called."""

    part: Part
    params: list[str] = dataclasses.field(default_factory=list)
    members: list[Member] = dataclasses.field(default_factory=list)
    statements: list[Statement] = dataclasses.field(default_factory=list)
    hints: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(eq=False)
class Made:
    """What a part is an object of: a class, with the constructor's arguments."""

    cls: Any
    arguments: dict[str, Any]
