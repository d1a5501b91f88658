"""Classes of the file: parts with equal bodies are of one, with their sizes as arguments."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tpu_estimator_compat.tools.to_keras.classes import Part
from tpu_estimator_compat.tools.to_keras.graph import Bound, Code, Layer, Weight
from tpu_estimator_compat.tools.to_keras.layers.naming import base_of
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.text.body import TOKEN, Body, Member
from tpu_estimator_compat.tools.to_keras.text.builder import Builder, parameters_of
from tpu_estimator_compat.tools.to_keras.text.naming import names_of

_PIECE = re.compile(
    r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|(?<![\w.])\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])'
)
_MOST_PARAMETERS = 4
_NONE = inspect.Parameter.empty
Place = tuple[Any, ...]


@dataclasses.dataclass(eq=False)
class Class:
    """A class of the file.

    Attributes:
      body: of the first of its parts.
      bodies: by part.
      names: by token of that body.
      texts: what is written in place of a number or argument that differs among the parts.
      parameters: by the constructor's argument, its value of each part.
    """

    name: str
    body: Body
    bodies: dict[Part, Body]
    names: dict[str, str]
    texts: dict[Place, str]
    parameters: dict[str, list[Any]]

    def __str__(self) -> str:
        return self.name

    @property
    def trains(self) -> bool:
        """Whether the call takes `training`."""
        texts = (text for _, statement in self.body.all() for text in statement.lines)
        return any(re.search(r"\btraining\b", text) for text in texts)

    def arguments(self, part: Part) -> dict[str, Any]:
        """The constructor's, of an object."""
        i = [*self.bodies].index(part)
        return {name: values[i] for name, values in self.parameters.items()}

    def things(self, part: Part) -> Iterator[tuple[str, Layer | Weight]]:
        """By the path of attributes, the layers and weights of an object."""
        for member, own in zip(self.body.members, self.bodies[part].members, strict=True):
            for i, thing in enumerate(own.things):
                path = self.names[member.token] + (f".{i}" if len(own.things) > 1 else "")
                if isinstance(thing, Part):
                    yield from ((f"{path}.{k}", each) for k, each in own.cls.things(thing))
                else:
                    yield path, thing

    def weights(self, part: Part) -> Iterator[tuple[str, Bound]]:
        """By the path of attributes, what each weight of an object is made of."""
        for path, thing in self.things(part):
            if isinstance(thing, Weight):
                yield path, Bound([thing])
            else:
                yield from ((f"{path}.{name}", bound) for name, bound in thing.bound.items())

    def constructor(self) -> list[str]:
        """The lines of `__init__` that make the members."""
        kept = [text for place, text in self.texts.items() if place[0] == "number"]
        used = [name for name in self.parameters if any(name in text.split() for text in kept)]
        lines = [f"self.{name} = {name}" for name in used]
        for i, member in enumerate(self.body.members):
            attribute = f"self.{self.names[member.token]}"
            lines.append(f"{attribute} = {self._made(i, member)}")
            if member.built:
                lines.append(f"{attribute}.build({literal(member.built)})")
        return lines

    def call(self) -> list[str]:
        """The lines of the call."""
        lines: list[str] = []
        before = 0
        for i, (depth, statement) in enumerate(self.body.all()):
            indent = "    " * depth
            if lines and lines[-1] and (depth < before or statement.inner):
                lines.append("")
            before = depth
            numbered = (self._numbers(i, j, text) for j, text in enumerate(statement.texts))
            start, *named = [TOKEN.sub(lambda m: self.names[m[0]], text) for text in numbered]
            target = self.names[statement.targets[0]] if statement.targets else ""
            if start and start != target:
                lines.append(f"{indent}{target} = {start}")
            lines += [indent + line for line in named]
        return lines

    def _numbers(self, i: int, j: int, line: str) -> str:
        found = enumerate(_PIECE.finditer(line))
        places = {m.start(): self.texts.get(("number", i, j, k), "") for k, m in found}
        texts = {at: re.sub(r"\b(?=[a-z])", "self.", text) for at, text in places.items()}
        return _PIECE.sub(lambda m: texts[m.start()] or m[0], line)

    def _made(self, i: int, member: Member) -> str:
        cls = "self.add_weight" if member.cls == "add_weight" else member.cls
        varying = member.varying
        given = []
        for k, (name, value) in enumerate(member.arguments[0].items()):
            text = self.texts.get((i, name)) or literal(value)
            if name in varying:
                text = name if len(varying) > 1 or name.isidentifier() else "each"
            elif text == literal(value) and value == parameters_of(member.cls).get(name, _NONE):
                continue
            alone = isinstance(member.cls, Class) and len(member.arguments[0]) == 1
            given.append(text if k < member.positional or alone else f"{name}={text}")
        if member.cls == "add_weight":
            given.append(f'name="{self.names[member.token]}"')
        made = f"{cls}({', '.join(given)})"
        if len(member.things) == 1:
            return made
        if not varying:
            count = self.texts.get((i, "count")) or str(len(member.things))
            return f"[{made} for _ in range({count})]"
        elements = self.texts.get((i, "each")) or literal(member.elements)
        return f"[{made} for {', '.join(varying)} in {elements}]"


def classes_of(root: Part) -> dict[Part, Class]:
    """The class of each part but the whole, the inner ones first."""
    found: dict[Part, Class] = {}
    left = [*root.parts()][:-1]
    while left:
        groups: dict[Any, list[Body]] = {}
        for part in left:
            if all(item in found for item in part.items if isinstance(item, Part)):
                body = Builder(part, found).as_part()
                groups.setdefault(_skeleton(body), []).append(body)
        for bodies in groups.values():
            for group in _alike(bodies):
                cls = _class(group, {each.name for each in found.values()})
                found.update(dict.fromkeys(cls.bodies, cls))
        left = [part for part in left if part not in found]
    return found


def single(body: Body, name: str) -> Class:
    """The class of one part."""
    return Class(name, body, {body.part: body}, names_of(body), {}, {})


def _class(bodies: list[Body], taken: set[str]) -> Class:
    texts, parameters = _parameters(bodies)
    scopes = [body.part.scope for body in bodies]
    bases = [_camel(body.part.scope_name) for body in bodies]
    name = max(dict.fromkeys(bases), key=bases.count)
    longer = [_camel(each) for each in reversed(scopes[bases.index(name)][:-1])]
    while name in taken:
        name = (longer.pop(0) if longer else "Other") + name
    body = bodies[0]
    for i, member in enumerate(body.members):
        if len({each.members[i].name for each in bodies}) > 1:
            member.name = base_of(member.name)
    return Class(name, body, {b.part: b for b in bodies}, names_of(body), texts, parameters)


def _camel(name: str) -> str:
    name = re.sub(r"_\d+$|(?<!_v)(?<!\d)\d+$", "", re.sub(r"\W", "_", name))
    return "".join(p[0].upper() + p[1:] for p in name.split("_") if p) or "Part"


def _skeleton(body: Body) -> Any:
    """What equal bodies have in common: all but numbers and names."""
    order: dict[str, str] = {token: f"p{i}" for i, token in enumerate(body.params)}

    def plain(line: str) -> str:
        line = TOKEN.sub(lambda m: order.setdefault(m[0], f"t{len(order)}"), line)
        return _PIECE.sub(lambda m: m[0] if m[0][0] in "\"'" else "#", line)

    lines = [depth * " " + plain(line) for depth, each in body.all() for line in each.texts]
    members = [
        (
            order.get(m.token),
            m.cls,
            m.positional,
            m.built,
            tuple(sorted(m.things[0].bound)) if isinstance(m.things[0], Layer) else (),
            len(m.things) > 1,
            tuple(m.varying),
        )
        for m in body.members
    ]
    return len(body.params), tuple(lines), tuple(members)


def _alike(bodies: list[Body]) -> list[list[Body]]:
    """Bodies that one class serves: all of them, or only equal ones if it had many arguments."""
    arguments = _parameters(bodies)[1]
    if len(arguments) <= _MOST_PARAMETERS:
        return [bodies]
    groups: dict[str, list[Body]] = {}
    for i, body in enumerate(bodies):
        groups.setdefault(literal([values[i] for values in arguments.values()]), []).append(body)
    return list(groups.values())


def _parameters(bodies: list[Body]) -> tuple[dict[Place, str], dict[str, list[Any]]]:
    """What is written at each place where bodies differ, and the arguments that this takes."""
    texts: dict[Place, str] = {}
    parameters: dict[str, list[Any]] = {}
    for place, base, values in _places(bodies):
        if len({literal(value) for value in values}) > 1:
            longer = f"{bodies[0].members[place[0]].name}_{base}" if place[0] != "number" else base
            kept = {member.name for member in bodies[0].members}
            names = [name for name in (base, longer) if name not in kept]
            texts[place] = _argument(names or ["size_"], values, parameters)
    return texts, parameters


def _argument(names: list[str], values: list[Any], parameters: dict[str, list[Any]]) -> str:
    """The text of values: of arguments that have them already, or a new one."""
    found = _known(values, parameters)
    if found:
        return found
    numbered = (f"{names[-1]}_{i}" for i in itertools.count(2))
    name = next(n for n in itertools.chain(names, numbered) if n not in parameters)
    parameters[name] = values
    return name


def _known(values: Sequence[Any], parameters: dict[str, list[Any]]) -> str:
    """The text of equal values, of an argument's, its multiples, or tuples of such; else empty."""
    if len({literal(value) for value in values}) == 1:
        return literal(values[0])
    for name, others in parameters.items():
        if literal(others) == literal([*values]):
            return name
        if all(type(x) is int and x > 0 for x in (*values, *others)):
            factors = {a / b for a, b in zip(values, others, strict=True)}
            if len(factors) == 1 and (factor := factors.pop()).is_integer():
                return f"{int(factor)} * {name}"
    if all(isinstance(value, tuple) and len(value) == len(values[0]) for value in values):
        parts = [_known(column, parameters) for column in zip(*values, strict=True)]
        return literal(tuple(map(Code, parts))) if all(parts) else ""
    return ""


def _places(bodies: list[Body]) -> Iterator[tuple[Place, str, list[Any]]]:
    """Each argument and number: where it is, what it is called, and its value in each body."""
    first = bodies[0]
    for i, member in enumerate(first.members):
        others = [body.members[i] for body in bodies]
        rows = [given for other in others for given in other.arguments]
        for name in dict.fromkeys(name for given in rows for name in given):
            default = parameters_of(member.cls).get(name, _NONE)
            numbers = any(type(given.get(name)) is int for given in rows)
            if numbers and isinstance(default, tuple) and len({*default}) == 1:
                default = default[0]  # such as of strides, of which Keras takes one number too
            for given in rows:
                given.setdefault(name, default)
            if name not in member.varying:
                yield (i, name), name, [other.arguments[0][name] for other in others]
        if member.varying:
            yield (i, "each"), f"all_{member.varying[0]}", [other.elements for other in others]
        else:
            yield (i, "count"), "count", [len(other.things) for other in others]
    for i, (_, statement) in enumerate(first.all()):
        for j, line in enumerate(statement.texts):
            pieces = [_PIECE.findall(body.all()[i][1].texts[j]) for body in bodies]
            for k, found in enumerate(_PIECE.finditer(line)):
                if found[0][0] not in "\"'":
                    keyword = re.search(r"(\w+)=\(?(?:[\d, ]*)$", line[: found.start()])
                    values = [int(x[k]) if x[k].isdigit() else Code(x[k]) for x in pieces]
                    yield ("number", i, j, k), keyword[1] if keyword else "size", values
