"""From a source to the text of a Keras model and its weights: the steps in their order."""

from __future__ import annotations

from tpu_estimator_compat.tools.to_keras import text
from tpu_estimator_compat.tools.to_keras.graph import LAYER, TRAINING, Code, Program, Weight
from tpu_estimator_compat.tools.to_keras.layers import recognize
from tpu_estimator_compat.tools.to_keras.operations import needs_tensorflow, refused
from tpu_estimator_compat.tools.to_keras.scans import find_scans
from tpu_estimator_compat.tools.to_keras.script import Modes
from tpu_estimator_compat.tools.to_keras.simplify import simplify
from tpu_estimator_compat.tools.to_keras.training.describing import describe
from tpu_estimator_compat.tools.to_keras.training.steps import Step


class RefusedError(ValueError):
    """Operations that have no form in Keras, all of them, each with its place."""


def prepare(program: Program, weights: dict[str, Weight] | None = None) -> None:
    """Simplifies a program and recognizes its layers, in place; `weights`: see `recognize`."""
    simplify(program)
    find_scans(program)
    simplify(program)
    recognize(program, weights)


def convert(program: Program) -> text.Written:
    """Writes the Keras model of a program; RefusedError names all that has no form in Keras."""
    prepare(program)
    notes = _without_strings(program)
    for node in program.nodes():
        if node.kind == LAYER and node.layer.call.get("training") is TRAINING:
            node.layer.call["training"] = Code("True")  # the graph does so whenever it runs
    _check(program)
    return text.write(program, None, notes)


def of_modes(modes: Modes, step: Step) -> text.Written:
    """The same of a model_fn, with what trains."""
    training = describe(modes, step, lambda program: prepare(program, modes.weights))
    training.notes += _without_strings(training.program)
    parts = [training.program, *([training.loss] if training.loss else [])]
    _check(*parts, *(metric.program for metric in training.metrics))
    return text.write(training.program, training, training.notes)


def _without_strings(program: Program) -> list[str]:
    """Leaves predictions of strings out where the rest needs no TensorFlow; says so."""
    numbers = {k: v for k, v in program.outputs.items() if v.dtype != "string"}
    rest = Program(program.inputs, numbers)
    left_out = sorted(program.outputs.keys() - numbers)
    if not left_out or not numbers or any(map(needs_tensorflow, rest.nodes())):
        return []
    program.outputs = numbers
    return [
        f"Left out: {', '.join(left_out)}. They are strings, which need TensorFlow. Derive them "
        "from other predictions, such as class_ids."
    ]


def _check(*programs: Program) -> None:
    if not programs[0].inputs:
        raise RefusedError("The predictions depend on no feature, and a Keras model has inputs.")
    lines = list(dict.fromkeys(line for program in programs for line in refused(program)))
    if lines:
        listed = "\n".join(f"  {line}" for line in lines)
        raise RefusedError(f"{len(lines)} operation(s) have no form in Keras:\n{listed}")
