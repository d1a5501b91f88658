"""A learning rate of a captured step as a number, or as one of Keras' schedules, or as a class."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.tools.to_keras.graph import (
    SOURCES,
    WEIGHT,
    Node,
    Program,
    Value,
    Weight,
)
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.operations import expression, refused
from tpu_estimator_compat.tools.to_keras.reading import read
from tpu_estimator_compat.tools.to_keras.script import Mode
from tpu_estimator_compat.tools.to_keras.simplify import simplify
from tpu_estimator_compat.tools.to_keras.training.losses import assigned_name

_STEP = tf.compat.v1.GraphKeys.GLOBAL_STEP
_COMPARISONS = frozenset({"Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual"})
_COPIES = frozenset({"Cast", "Identity"})
_CLASS = '''\
@keras.saving.register_keras_serializable("model")
class LearningRate(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate by the number of steps."""

    def __call__(self, step):
{lines}

    def get_config(self):
        return {{}}
'''


def schedule(
    mode: Mode, rate: tf.Tensor, weights: dict[str, Weight]
) -> tuple[str, bool, list[str]]:
    """The text of a rate, whether it is a number, and the classes that the text uses.

    Args:
      rate: a scalar of the graph on resource variables.
    """
    program = read(mode.graph, {}, {"rate": rate}, weights)
    root = program.outputs["rate"]
    if root.node.kind == WEIGHT and root.node.attrs["weight"].name != _STEP:
        return literal(np.float32(root.node.attrs["weight"].value)), True, []
    others = sorted(set(program.weights()) - {_STEP})
    placeholders = [n.name for n in program.nodes() if n.kind.startswith("Placeholder")]
    if others or placeholders:
        raise ValueError(f"its rate depends on {', '.join(others + placeholders)}.")
    known = _exponential(root) or _polynomial(root) or _piecewise(mode, rate, program)
    if known:
        return known, False, []
    simplify(program)
    root = program.outputs["rate"]
    if root.constant is not None:
        return literal(root.constant.astype("float32")), True, []
    if lines := refused(program):
        raise ValueError("its rate has no form in Keras: " + "; ".join(lines))
    body = "\n".join(f"        {line}" for line in _statements(program))
    return "LearningRate()", False, [_CLASS.format(lines=body)]


def _statements(program: Program) -> list[str]:
    """The statements that compute and return the only output of a program of the step."""
    texts: dict[Value, str] = {}
    lines: list[str] = []
    users = program.users()
    [root] = program.outputs.values()
    for node in program.nodes():
        first = node.outputs[0]
        if node.kind in SOURCES:
            is_step = node.kind == WEIGHT
            texts[first] = "step" if is_step else literal(node.attrs["value"])
            continue
        text = expression(node, [texts[value] for value in node.inputs])
        name = assigned_name(node.place)
        if first is not root and (len(users[first]) > 1 or len(text) > 60):
            name = name if name and not any(ln.startswith(f"{name} =") for ln in lines) else ""
            name = name or f"value_{len(lines)}"
            lines.append(f"{name} = {text}")
            text = name
        texts[first] = text
    return [*lines, f"return {texts[root]}"]


def _constant(value: Value) -> Any:
    """A number, through copies."""
    while value.node.kind in _COPIES:
        value = value.node.inputs[0]
    array = value.constant
    return None if array is None or array.ndim else array[()]


def _is_step(value: Value) -> bool:
    while value.node.kind in _COPIES:
        value = value.node.inputs[0]
    return value.node.kind == WEIGHT


def _with_constant(node: Node, kind: str) -> tuple[Any, Value | None]:
    """The constant and the other input of a sum or product."""
    for one, other in (node.inputs, node.inputs[::-1]) if node.kind == kind else ():
        if _constant(one) is not None:
            return _constant(one), other
    return None, None


def _call(name: str, **arguments: Any) -> str:
    given = ", ".join(f"{k}={literal(v)}" for k, v in arguments.items())
    return f"keras.optimizers.schedules.{name}({given})"


def _exponential(root: Value) -> str:
    initial, power = _with_constant(root.node, "Mul")
    if power is None or power.node.kind != "Pow" or _constant(power.node.inputs[0]) is None:
        return ""
    exponent = power.node.inputs[1].node
    staircase = exponent.kind == "Floor"
    divided = exponent.inputs[0].node if staircase else exponent
    if divided.kind != "RealDiv" or not _is_step(divided.inputs[0]):
        return ""
    steps = _constant(divided.inputs[1])
    options = {"staircase": True} if staircase else {}
    rate = _constant(power.node.inputs[0])
    return (
        ""
        if steps is None
        else _call(
            "ExponentialDecay",
            initial_learning_rate=initial,
            decay_steps=_whole(steps),
            decay_rate=rate,
            **options,
        )
    )


def _whole(number: Any) -> Any:
    return int(number) if float(number).is_integer() else number


def _polynomial(root: Value) -> str:
    end, scaled = _with_constant(root.node, "AddV2")
    if scaled is None or scaled.node.kind != "Mul":
        return ""
    difference, power = (value.node for value in scaled.node.inputs)
    if difference.kind != "Sub" or power.kind != "Pow" or _constant(power.inputs[1]) is None:
        return ""
    left, divided = power.inputs[0].node, None
    if left.kind == "Sub" and _constant(left.inputs[0]) == 1:
        divided = left.inputs[1].node
    if divided is None or divided.kind != "RealDiv":
        return ""
    steps, counted = _constant(divided.inputs[1]), divided.inputs[0].node
    most, step = _with_constant(counted, "Minimum")
    initial, end_again = map(_constant, difference.inputs)
    if step is None or not _is_step(step) or most != steps or end_again != end or initial is None:
        return ""
    return _call(
        "PolynomialDecay",
        initial_learning_rate=initial,
        decay_steps=_whole(steps),
        end_learning_rate=end,
        power=_constant(power.inputs[1]),
    )


def _piecewise(mode: Mode, rate: tf.Tensor, program: Program) -> str:
    """Of a rate for which the step is compared with constants, and used for nothing else."""
    boundaries: set[int] = set()
    users = program.users()
    stack = [n.outputs[0] for n in program.nodes() if n.kind == WEIGHT]
    while stack:
        value = stack.pop()
        for node in users.get(value, []):
            if node.kind in _COPIES:
                stack.append(node.outputs[0])
                continue
            others = [_constant(v) for v in node.inputs if v is not value]
            if node.kind not in _COMPARISONS or len(others) != 1 or others[0] is None:
                return ""
            boundaries.add(int(np.floor(others[0])))
    if not boundaries:
        return ""
    wanted = sorted({edge + d for edge in boundaries for d in (-1, 0, 1)} - {-1, -2})
    values = _rates(mode, rate, wanted)
    changes = [i for i in range(1, len(wanted)) if values[i] != values[i - 1]]
    return _call(
        "PiecewiseConstantDecay",
        boundaries=[wanted[i - 1] for i in changes],
        values=[values[0], *(values[i] for i in changes)],
    )


def _rates(mode: Mode, rate: tf.Tensor, steps: list[int]) -> list[Any]:
    """The rate at some steps."""
    step = tf.compat.v1.train.get_global_step(mode.captured.graph)
    with mode.captured.in_graph():
        # A branch's own tensor cannot be fetched.
        captured = tf.identity(mode.captured.graph.get_tensor_by_name(rate.name))
        before = mode.session.run(step.read_value())
        found = []
        for number in [*steps, before]:
            step.load(number, mode.session)
            found.append(mode.session.run(captured))
    return found[:-1]
