"""Runs a program by the expressions that text would be written of."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import ops

from tpu_estimator_compat.tools.to_keras import operations
from tpu_estimator_compat.tools.to_keras.graph import BRANCH, CONSTANT, INPUT, LOOP, SCAN, WEIGHT
from tpu_estimator_compat.tools.to_keras.helpers import FUNCTIONS
from tpu_estimator_compat.tools.to_keras.literals import literal


def evaluated(program, given):
    """The outputs; `given` has the inputs by key."""
    names, texts, values = {"ops": ops, "tf": tf, "keras": keras, **FUNCTIONS}, {}, {}
    for i, node in enumerate(program.nodes()):
        name = f"v{i}"
        inputs = [eval(texts[v], names) for v in node.inputs]
        if node.kind == INPUT:
            names[name] = ops.convert_to_tensor(given[node.attrs["key"]])
        elif node.kind == WEIGHT:
            names[name] = ops.convert_to_tensor(node.attrs["weight"].value)
        elif node.kind == CONSTANT:
            names[name] = node.attrs["value"]
        elif node.kind == BRANCH:
            side = node.bodies["then_branch" if inputs[0] else "else_branch"]
            names[name] = evaluated(side, by_place(inputs[1:]))
        elif node.kind == LOOP:
            while evaluated(node.bodies["cond"], by_place(inputs))[0]:
                inputs = evaluated(node.bodies["body"], by_place(inputs))
            names[name] = inputs
        elif node.kind == SCAN:
            names[name] = scanned(node, inputs)
        else:
            names[name] = eval(operations.expression(node, [texts[v] for v in node.inputs]), names)
        several = len(node.outputs) > 1 or node.kind in (BRANCH, LOOP, SCAN)
        several &= node.kind not in operations.FIRST_ALONE
        texts.update({v: f"{name}[{v.index}]" if several else name for v in node.outputs})
        if node.kind == CONSTANT and node.attrs["value"].ndim == 0:
            texts[node.outputs[0]] = literal(node.attrs["value"])
        values.update({v: eval(texts[v], names) for v in node.outputs})
    return [values[value] for value in program.outputs.values()]


def by_place(values):
    return {str(i): value for i, value in enumerate(values)}


def scanned(node, inputs):
    carried, read = node.attrs["carried"], node.attrs["read"]
    state, arrays = inputs[:carried], inputs[carried : carried + read]
    results = []
    for i in range(node.attrs["length"] or len(arrays[0])):
        elements = [array[i] for array in arrays]
        given = [*state, *elements, *inputs[carried + read :], i]
        made = evaluated(node.bodies["step"], by_place(given))
        state, result = made[:carried], made[carried:]
        results.append(result)
    return [*state, *(ops.stack(each) for each in zip(*results, strict=True))]
