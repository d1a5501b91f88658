"""Branches and loops as local functions that `ops.cond`, `ops.while_loop` and `ops.scan` take.

And loops over equal layers or parts, of which each takes what the one before gives.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tpu_estimator_compat.tools.to_keras.classes import Part
from tpu_estimator_compat.tools.to_keras.graph import LAYER, Node, Value, constant
from tpu_estimator_compat.tools.to_keras.layers.naming import base_of
from tpu_estimator_compat.tools.to_keras.scans import most_steps, places_of_results
from tpu_estimator_compat.tools.to_keras.text.body import Statement, hint_of_place

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.to_keras.text.builder import Builder


def branches(builder: Builder, node: Node) -> None:
    condition, *given = (builder.ref(value) for value in node.inputs)
    used = [value for value in node.outputs if builder.users(value)]
    functions = []
    for key in ("then_branch", "else_branch"):
        body = node.bodies[key]
        builder.texts.update({value: given[int(i)] for i, value in body.inputs.items()})
        results = [[body.outputs[str(value.index)]] for value in used]
        functions.append(builder.function(results, [], key))
    builder.assign([[value] for value in used], f"ops.cond({condition}, {', '.join(functions)})")


def loop(builder: Builder, node: Node) -> None:
    condition, body = node.bodies["cond"], node.bodies["body"]
    changed = []
    for i, value in enumerate(node.inputs):
        if body.outputs[str(i)] is not body.inputs[str(i)]:
            changed.append(i)
        elif value.dtype != "resource":
            same = [condition.inputs[str(i)], body.inputs[str(i)], node.outputs[i]]
            builder.texts.update(dict.fromkeys(same, builder.ref(value)))
    functions = [
        builder.function(results, [[each.inputs.get(str(i))] for i in changed], hint)
        for each, results, hint in (
            (condition, [[condition.outputs["0"]]], "condition"),
            (body, [[body.outputs[str(i)]] for i in changed], "body"),
        )
    ]
    start = tuple_of([builder.ref(node.inputs[i]) for i in changed])
    most = most_steps(node)  # without which XLA has no gradient
    end = "" if most is None else f", maximum_iterations={most}"
    text = f"ops.while_loop({', '.join(functions)}, {start}{end})"
    builder.assign([[node.outputs[i]] for i in changed], text)


def scan(builder: Builder, node: Node) -> None:
    """A loop over arrays.

    A result stands in the place of a carried value of its shape.
    """
    body, carried, read = node.bodies["step"], node.attrs["carried"], node.attrs["read"]
    places: list[Value | None] = [body.inputs.get(str(i)) for i in range(len(node.inputs) + 1)]
    texts = [builder.ref(value) for value in node.inputs]
    kept = zip(places[carried + read : -1], texts[carried + read :], strict=True)
    builder.texts.update({value: text for value, text in kept if value is not None})
    arrays, elements = texts[carried : carried + read], places[carried : carried + read]
    start, states, given = texts[:carried], places[:carried], list(body.outputs.values())
    after, results, ends = given[:carried], given[carried:], node.outputs
    index, length = places[-1], node.attrs["length"]
    if index is not None and index.node in body.nodes():
        if carried and length is None:  # Keras takes no second array of unknown length
            one = Node("AddV2", "next", [index, constant(np.int32(1))]).output((), "int32")
            start, states, after = [*start, "0"], [*states, index], [*after, one]
        else:
            steps = length or f"ops.shape({arrays[0]})[0]"
            arrays, elements = [*arrays, f"ops.arange({steps})"], [*elements, index]
    if not carried:
        step = builder.function([[value] for value in results], [elements], "step")
        builder.assign([[value] for value in ends], f"ops.map({step}, {tuple_of(arrays)})")
        return
    stacked = list(after)
    slots: list[Value | None] = [None] * len(after)
    ends_of_results = zip(places_of_results(node), results, ends[carried:], strict=True)
    for place, result, end in ends_of_results:
        stacked[place], slots[place] = result, end
    step = builder.function([after, stacked], [states, elements], "step")
    shown = [tuple_of(arrays) if arrays else f"length={length}"]
    text = f"ops.scan({', '.join([step, tuple_of(start), *shown])})"
    lasts = [*ends[:carried], *[None] * (len(after) - carried)]
    builder.assign([lasts, slots], text)


def tuple_of(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


_LEAST = {True: 2, False: 3}
"""How many parts, or layers, are worth a loop."""


def chain_of(builder: Builder, items: Sequence[Node]) -> Sequence[Node]:
    """The first item, with those after it if all are a chain: of one object, or of equal ones."""
    place, again, count = None, None, 1
    for last, item in itertools.pairwise(items):
        found = _follows(builder, last, item)
        same = found is not None and item.thing == last.thing
        if found is None or place not in (None, found) or again not in (None, same):
            break
        if not same and item.thing in builder.objects:
            break
        place, again, count = found, same, count + 1
    known = items[0].thing in builder.objects and not again
    return items[: 1 if known or count < _LEAST[isinstance(items[0], Part)] else count]


def _follows(builder: Builder, last: Node, item: Node) -> int | None:
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


def _kind(builder: Builder, item: Node) -> Any:
    """What equal items have in common; None for an operation."""
    if isinstance(item, Part):
        return builder.made[item], base_of(item.scope_name)
    if item.kind != LAYER:
        return None
    layer = item.layer
    names = *layer.options, *layer.bound
    return layer.cls, base_of(layer.name), len(layer.args), names, str(layer.call)


def write_chain(builder: Builder, chain: Sequence[Node]) -> None:
    begin, end = chain[0], chain[-1]
    (carried,) = (v for v, w in zip(begin.inputs, chain[1].inputs, strict=True) if v is not w)
    start = builder.ref(carried)
    token = builder.token(end.outputs[0], hint_of_place(begin))
    builder.texts[carried] = token
    if begin.thing == end.thing:
        head, call = f"for _ in range({len(chain)}):", builder.expression(begin)
    else:
        member = builder.member(chain)
        for i, item in enumerate(chain):
            builder.objects[item.thing] = f"self.{member.token}[{i}]"
        each = builder.token(None, base_of(member.name).removesuffix("s"))
        call = builder.expression(begin).replace(f"self.{member.token}[0]", each)
        head = f"for {each} in self.{member.token}:"
    builder.texts[carried] = start
    builder.body.statements.append(Statement([head, f"    {token} = {call}"], [token], start))
