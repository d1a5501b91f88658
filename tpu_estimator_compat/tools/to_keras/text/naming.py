"""Names for what a body makes, instead of tokens: an author's, used again as an author would."""

from __future__ import annotations

import itertools
import keyword
import re
from collections import Counter
from collections.abc import Iterable

import keras

from tpu_estimator_compat.tools.to_keras.text.body import TOKEN, Body, Member, Statement

_TAKEN = {"self", "inputs", "training", "keras", "layers", "ops", "tf", "x_", *keyword.kwlist}
_OF_KERAS = {*dir(keras.Model), *dir(keras.layers.Layer), "self", "seed_generator", "metrics"}
_GENERAL = ("x", "y", "z", "u", "v", "w")
_BUILT_IN = set(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)


def names_of(body: Body) -> dict[str, str]:
    """By token, the names of a body's members, parameters, values and functions."""
    return _attributes(body.members, body.part.scope) | _Locals(body).names


def _attributes(members: list[Member], scope: tuple[str, ...]) -> dict[str, str]:
    around = re.sub(r"\W|_?\d+$", "", scope[-1]).lower() if scope else "model"
    bases = {}
    for member in members:
        base = identifier(member.name)
        if base in _OF_KERAS or keyword.iskeyword(base):
            base = f"{around}_{base}"
        bases[member.token] = base
    return _numbered(bases)


def _numbered(bases: dict[str, str]) -> dict[str, str]:
    """The same names where they are different, and numbered ones where they are not."""
    counts, seen, names = Counter(bases.values()), Counter[str](), {}
    for token, base in bases.items():
        seen[base] += 1
        names[token] = base if counts[base] == 1 else f"{base}_{seen[base]}"
    return names


def identifier(name: str) -> str:
    name = re.sub(r"\W", "_", name).strip("_").lower()
    return name if name and not name[0].isdigit() else f"part_{name}".rstrip("_")


class _Locals:
    """Gives names in the order of the statements; a value that is used up leaves its name."""

    def __init__(self, body: Body):
        self._body = body
        self.names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._features: set[str] = set()
        self._uses = [self._used([*s.lines, s.start], s.targets) for s in body.statements]
        self._last = {token: i for i, uses in enumerate(self._uses) for token in uses}
        self._count = Counter(token for uses in self._uses for token in uses)
        made = {token for statement in body.statements for token in statement.targets}
        for token in body.params:
            self._give(token, body.hints.get(token, ""))
        self._features.update(t for t in body.params if self.names[t] not in _GENERAL)
        self._uses = [[t for t in uses if t in made or t in self.names] for uses in self._uses]
        for i, statement in enumerate(body.statements):
            self._name(i, statement.targets)
        for statement in body.statements:
            self._name_inner(statement)

    def _name_inner(self, statement: Statement) -> None:
        """Names the locals of a function and what a loop is over, apart from what they use."""
        tokens = [t for line in statement.lines for t in TOKEN.findall(line) if t[0] != "m"]
        outer = [token for token in tokens if token in self.names]
        loop = statement.lines[0].startswith("for ")
        self._taken = set(self.names.values()) if loop else {self.names[t] for t in outer}
        for token in dict.fromkeys(tokens):
            if token not in self.names:
                self._give(token, self._body.hints.get(token, "").removeprefix("?"))

    @staticmethod
    def _used(lines: Iterable[str], targets: list[str]) -> list[str]:
        found = [token for line in lines for token in TOKEN.findall(line)]
        return [token for token in dict.fromkeys(found) if token not in targets and token[0] != "m"]

    def _name(self, i: int, targets: list[str]) -> None:
        statement = self._body.statements[i]
        ends = [token for token in self._uses[i] if self._last[token] == i]
        if statement.start:  # what a loop takes stays until its end
            inside = self._used(statement.lines, targets)
            ends = [token for token in ends if token not in inside]
        self._taken -= {self.names[token] for token in ends}
        for target in targets:
            hint = self._body.hints.get(target, "")
            again = [t for t in ends if t in self.names and self.names[t] not in self._taken]
            again = [t for t in again if t not in self._features and t[0] == "v"]
            keeps = (
                again
                and len(targets) == 1
                and (not hint or (hint[0] == "?" and self._count[again[0]] == 1))
            )
            if keeps:
                self.names[target] = self.names[again[0]]
                self._taken.add(self.names[target])
            else:
                self._give(target, hint.removeprefix("?"))
            if 'inputs["' in statement.lines[0] and self.names[target] not in _GENERAL:
                self._features.add(target)
        # What is made and never used leaves its name, too.
        self._taken -= {self.names[t] for t in targets if t not in self._last}

    def _give(self, token: str, hint: str) -> None:
        free = (name for name in _GENERAL if name not in self._taken)
        base = identifier(hint) if hint else next(free, "x")
        base = base if base not in _TAKEN | _BUILT_IN else f"{base}_value"
        numbered = (f"{base}_{i}" for i in itertools.count(2))
        name = next(n for n in itertools.chain([base], numbered) if n not in self._taken)
        self.names[token] = name
        self._taken.add(name)
