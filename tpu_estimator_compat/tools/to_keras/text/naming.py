"""Names for what a body makes, instead of tokens: an author's, used again as an author would."""

from __future__ import annotations

import itertools
import keyword
import re
from collections import Counter

import keras

from tpu_estimator_compat.tools.to_keras.layers.naming import base_of
from tpu_estimator_compat.tools.to_keras.text.body import Body, Member, Statement, is_like

_TAKEN = {"self", "features", "training", "keras", "layers", "ops", "tf", "x_", *keyword.kwlist}
_OF_KERAS = {*dir(keras.Model), *dir(keras.layers.Layer), *dir(keras.Model())}
_OF_KERAS |= {"self", "seed_generator", "optimizer", "stop_training", "history"}
_GENERAL = ("x", "y", "z", "u", "v", "w")
_BUILT_IN = set(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)


def names_of(body: Body) -> dict[str, str]:
    """By token, the names of a body's members, parameters, values and functions."""
    names = _attributes(body.members, body.part.scope)
    return _Locals(body, body.statements, body.params, names, set()).names


def _attributes(members: list[Member], scope: tuple[str, ...]) -> dict[str, str]:
    around = re.sub(r"\W|_?\d+$", "", scope[-1]).lower() if scope else "model"
    full, bases = Counter(member.name for member in members), {}
    for member in members:
        # TensorFlow's own number, such as that of "conv2d_4".
        numbered = re.search(r"_\d+$", member.name) and isinstance(member.cls, str)
        again = full[member.name] > 1 or (numbered and is_like(base_of(member.name), member.cls))
        base = identifier(base_of(member.name) if again else member.name)
        if base in _OF_KERAS or keyword.iskeyword(base):
            base = f"{around}_{base}"
        bases[member.token] = base
    counts, seen, names = Counter(bases.values()), Counter[str](), {}
    for token, base in bases.items():
        seen[base] += 1
        names[token] = base if counts[base] == 1 else f"{base}_{seen[base]}"
    return names


def identifier(name: str) -> str:
    name = re.sub(r"\W", "_", name).strip("_").lower()
    return name if name and not name[0].isdigit() else f"part_{name}".rstrip("_")


class _Locals:
    """Gives names in the order of the statements; a value that is used up leaves its name.

    Attributes:
      names: by token; what stands outside of a function is there before.
    """

    def __init__(
        self,
        body: Body,
        statements: list[Statement],
        params: list[str],
        names: dict[str, str],
        taken: set[str],
    ):
        self.names, self._taken, self._hints = names, taken | body.taken, body.hints
        for token in params:
            self._give(token, body.hints.get(token, "").lstrip("="))
        own = {*params, *(token for each in statements for token in each.targets)}
        uses = [[t for t in s.tokens() if t in own and t not in s.targets] for s in statements]
        self._last = {token: i for i, tokens in enumerate(uses) for token in tokens}
        self._count = Counter(itertools.chain.from_iterable(uses))
        for i, statement in enumerate(statements):
            ends = [token for token in uses[i] if self._last[token] == i]
            if statement.start:  # what a loop takes stays until its end
                ends = [t for t in ends if not any(t in line for line in statement.lines)]
            self._taken -= {names[token] for token in ends}
            for target in statement.targets:
                self._name(target, ends if len(statement.targets) == 1 else [], len(uses[i]))
            self._taken -= {names[t] for t in statement.targets if t not in self._last}
            if statement.params or statement.inner:
                outside = {names[token] for token in statement.tokens() if token in names}
                _Locals(body, statement.inner, statement.params, names, outside)
            for token in statement.tokens():
                if token not in names:  # of a lambda, or what a loop is over
                    self._give(token, body.hints.get(token, "").lstrip("?="))
                    self._taken.discard(names[token])

    def _name(self, target: str, ends: list[str], count: int) -> None:
        """Names a value, after one that ends there if the author gave it no name.

        The name of a feature is for that alone, and another name that says something for what is
        made of that value alone, which is one of `count`.
        """
        hint = self._hints.get(target, "")
        free = [t for t in ends if t[0] == "v" and self.names[t] not in self._taken]
        free = [t for t in free if self.names[t] in _GENERAL or count == 1]
        free = [t for t in free if self._hints.get(t, "")[:1] != "=" or self.names[t] in _GENERAL]
        if free and (not hint or (hint[0] == "?" and self._count[free[0]] == 1)):
            self.names[target] = self.names[free[0]]
            self._taken.add(self.names[target])
        else:
            self._give(target, hint.lstrip("?="))

    def _give(self, token: str, hint: str) -> None:
        free = (name for name in _GENERAL if name not in self._taken)
        base = identifier(hint) if hint else next(free, "x")
        if base in _GENERAL:
            base = base if base not in self._taken else next(free, "x")
        base = base if base not in _TAKEN | _BUILT_IN else f"{base}_value"
        numbered = (f"{base}_{i}" for i in itertools.count(2))
        name = next(n for n in itertools.chain([base], numbered) if n not in self._taken)
        self.names[token] = name
        self._taken.add(name)
