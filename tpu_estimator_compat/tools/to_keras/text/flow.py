"""Branches and loops as local functions that `ops.cond`, `ops.while_loop` and `ops.scan` take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tpu_estimator_compat.tools.to_keras.graph import Node, Value, constant
from tpu_estimator_compat.tools.to_keras.scans import most_steps, places_of_results

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
