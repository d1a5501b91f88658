"""A learning rate of a captured step as a number, or as one of Keras' schedules, or as a class."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.tools.to_keras.classes import Part
from tpu_estimator_compat.tools.to_keras.graph import (
    INPUT,
    WEIGHT,
    Program,
    Value,
    Weights,
    constant,
)
from tpu_estimator_compat.tools.to_keras.layers.matching import NODES, Rules
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.operations import refused
from tpu_estimator_compat.tools.to_keras.reading import read
from tpu_estimator_compat.tools.to_keras.script import Mode
from tpu_estimator_compat.tools.to_keras.simplify import simplify
from tpu_estimator_compat.tools.to_keras.text.builder import Builder
from tpu_estimator_compat.tools.to_keras.text.equal import single

_STEP = tf.compat.v1.GraphKeys.GLOBAL_STEP
_COMPARISONS = frozenset({"Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual"})
_RULES = Rules(
    {
        "count": "Cast(step) | step",
        "passed": "count / number.decay_steps",
        "done": "Minimum(count, number.decay_steps) / number.decay_steps",
        "times": "Floor(passed) | passed",
    }
)
_SCHEDULES = {
    "CosineDecay": "number.initial_learning_rate "
    "* (number.rest * 0.5 * (1 + Cos(3.1415927 * done)) + number.alpha)",
    "ExponentialDecay": "number.initial_learning_rate * number.decay_rate ** times",
    "InverseTimeDecay": "number.initial_learning_rate / (1 + number.decay_rate * times)",
    "PolynomialDecay": "number.difference * (1 - done) ** number.power + number.end_learning_rate",
}
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
    mode: Mode, rate: tf.Tensor, weights: Weights, written: Collection[str]
) -> tuple[str, bool, list[str]]:
    """The text of a rate, whether it is a number, and the classes that the text uses.

    Raises ValueError where it depends on more than the global step and on variables that keep
    their values.

    Args:
      rate: a scalar of the graph on resource variables.
      written: names of the variables that a step changes.
    """
    program = read(mode.graph, {}, {"rate": rate}, weights)
    for node in program.nodes():
        if node.kind == WEIGHT and node.attrs["weight"].name not in {_STEP, *written}:
            program.replace(node.outputs[0], constant(node.attrs["weight"].value))
    others = sorted(set(program.weights()) - {_STEP})
    others += [n.name for n in program.nodes() if n.kind.startswith("Placeholder")]
    if others:
        raise ValueError(f"its rate depends on {', '.join(others)}.")
    simplify(program)
    root = program.outputs["rate"]
    if root.constant is not None:
        return literal(root.constant.astype("float32")), True, []
    if known := _of_keras(root) or _piecewise(mode, rate, program):
        return known, False, []
    if lines := refused(program):
        raise ValueError("its rate has no form in Keras: " + "; ".join(lines))
    for node in program.nodes():
        if node.kind == WEIGHT:  # the global step
            node.kind, node.attrs = INPUT, {"text": "step"}
            program.inputs["step"] = node.outputs[0]
    method = single(Builder(Part(()), {}).as_method(program, ["return {rate}"]), "")
    body = "\n".join(f"        {line}" for line in method.call())
    return "LearningRate()", False, [_CLASS.format(lines=body)]


def _call(name: str, **arguments: Any) -> str:
    given = ", ".join(f"{k}={literal(v)}" for k, v in arguments.items())
    return f"keras.optimizers.schedules.{name}({given})"


def _of_keras(root: Value) -> str:
    """A schedule of Keras by what it computes; empty if it is none."""
    for name, pattern in _SCHEDULES.items():
        for found in _RULES.compile(pattern)(root, {}):
            if found["step"].node.kind != WEIGHT:
                continue
            is_floor = any(node.kind == "Floor" for node in found[NODES])
            numbers = {k: v for k, v in found.items() if isinstance(v, (int, float))}
            if "difference" in numbers:  # folded: the first rate without the last
                total = numbers.pop("difference") + numbers["end_learning_rate"]
                numbers = {"initial_learning_rate": float(f"{total:.6g}"), **numbers}
            if "rest" in numbers:
                alpha = numbers.pop("alpha")
                if not np.isclose(numbers.pop("rest"), 1 - alpha):
                    continue
                numbers |= {"alpha": alpha} if alpha else {}
            if float(numbers["decay_steps"]).is_integer():
                numbers["decay_steps"] = int(numbers["decay_steps"])
            return _call(name, **numbers, **({"staircase": True} if is_floor else {}))
    return ""


def _piecewise(mode: Mode, rate: tf.Tensor, program: Program) -> str:
    """Of a rate for which the step is compared with constants, and used for nothing else."""
    boundaries: set[int] = set()
    users = program.users()
    stack = [n.outputs[0] for n in program.nodes() if n.kind == WEIGHT]
    while stack:
        value = stack.pop()
        for node in users.get(value, []):
            if node.kind == "Cast":
                stack.append(node.outputs[0])
                continue
            edge = [v.constant for v in node.inputs if v is not value]
            if node.kind not in _COMPARISONS or len(edge) != 1 or edge[0] is None:
                return ""
            boundaries.add(int(np.floor(edge[0])))
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
