"""Loops over equal layers or parts, of which each takes what the one before gives."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tpu_estimator_compat.tools.to_keras.classes import Part
from tpu_estimator_compat.tools.to_keras.graph import LAYER, Node
from tpu_estimator_compat.tools.to_keras.layers.naming import base_of
from tpu_estimator_compat.tools.to_keras.text.body import (
    Statement,
    hint_of_place,
    thing_of,
)

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.to_keras.text.builder import Builder

_LEAST = {True: 2, False: 3}
"""How many parts, or layers, are worth a loop."""


def first(builder: Builder, items: Sequence[Node | Part]) -> Sequence[Node | Part]:
    """The first item, with those after it if all are a chain: of one object, or of equal ones."""
    place, again, count = None, None, 1
    for last, item in itertools.pairwise(items):
        found = _follows(builder, last, item)
        same = found is not None and thing_of(item) == thing_of(last)
        if found is None or place not in (None, found) or again not in (None, same):
            break
        if not same and thing_of(item) in builder.objects:
            break
        place, again, count = found, same, count + 1
    known = thing_of(items[0]) in builder.objects and not again
    return items[: 1 if known or count < _LEAST[isinstance(items[0], Part)] else count]


def _follows(builder: Builder, last: Node | Part, item: Node | Part) -> int | None:
    """At which of its inputs `item` takes what `last` gives, all else being equal."""
    kind = _kind(builder, last)
    if kind is None or kind != _kind(builder, item) or len(last.outputs) != 1:
        return None
    if builder.users(last.outputs[0]) != [item] or len(last.inputs) != len(item.inputs):
        return None
    pairs = enumerate(zip(last.inputs, item.inputs, strict=True))
    differing = [i for i, (a, b) in pairs if a is not b]
    one = len(differing) == 1 and item.inputs[differing[0]] is last.outputs[0]
    return differing[0] if one else None


def _kind(builder: Builder, item: Node | Part) -> Any:
    """What equal items have in common; None for an operation."""
    if isinstance(item, Part):
        return builder.made[item], base_of(item.name)
    if item.kind != LAYER:
        return None
    layer = item.layer
    names = *layer.options, *layer.bound
    return layer.cls, base_of(layer.name), len(layer.args), names, str(layer.call)


def write(builder: Builder, chain: Sequence[Node | Part]) -> None:
    begin, end = chain[0], chain[-1]
    (carried,) = (v for v, w in zip(begin.inputs, chain[1].inputs, strict=True) if v is not w)
    start = builder.ref(carried)
    token = builder.token(end.outputs[0], hint_of_place(begin))
    builder.texts[carried] = token
    if thing_of(begin) == thing_of(end):
        head, call = f"for _ in range({len(chain)}):", builder.expression(begin)
    else:
        member = builder.member(chain)
        for i, item in enumerate(chain):
            builder.objects[thing_of(item)] = f"self.{member.token}[{i}]"
        each = builder.token(None, base_of(member.name).removesuffix("s"))
        call = builder.expression(begin).replace(f"self.{member.token}[0]", each)
        head = f"for {each} in self.{member.token}:"
    builder.texts[carried] = start
    builder.body.statements.append(Statement([head, f"    {token} = {call}"], [token], start))
