"""Describes how a captured model trains: from the graphs of its modes to a `Training`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.refs import resource_graph
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.to_keras.graph import LAYER, WEIGHT, Bound, Code, Program, Value
from tpu_estimator_compat.tools.to_keras.script import Mode, Modes
from tpu_estimator_compat.tools.to_keras.training import Metric, Training, metrics, optimizers
from tpu_estimator_compat.tools.to_keras.training.losses import Cut, write_loops
from tpu_estimator_compat.tools.to_keras.training.merging import Merged, unify


def describe(modes: Modes, prepare: Callable[[Program], None]) -> Training:
    """How a model trains and evaluates, with one program of all its modes.

    Args:
      prepare: simplifies a program, and recognizes its layers, in place.
    """
    notes: list[str] = []
    found, programs = _programs(modes, prepare, notes)
    train, evaluation = programs.get(ModeKeys.TRAIN), programs.get(ModeKeys.EVAL)
    if train and ModeKeys.TRAIN in modes.modes:
        _set_momentum(modes.modes[ModeKeys.TRAIN], train)
    others = [programs[m] for m in (ModeKeys.PREDICT, ModeKeys.EVAL) if m in programs]
    merged = Merged(
        list(train.outputs.values()) if train else [],
        [value for program in others for value in program.outputs.values()],
    )
    loss = _loss(merged, train, evaluation)
    served = programs.get(ModeKeys.PREDICT) or evaluation or train
    assert served is not None  # TRAIN is always there
    predictions = {
        name.removeprefix(_PREDICTION): merged.value(value)
        for name, value in served.outputs.items()
        if name.startswith(_PREDICTION)
    }
    cut = Cut(predictions)
    training = Training(Program({}, {}), list(predictions), step=modes.step, notes=notes)
    if loss is not None:
        training.loss = cut.program({"loss": loss})
    for name, each in found.items():
        assert evaluation is not None  # which has metrics
        outputs = {k: merged.value(evaluation.outputs[_key(name, k)]) for k in each.arguments}
        given = ", ".join(filter(None, [each.options, f'name="{name}"']))
        made = Code(f"{each.cls}({given})")
        training.metrics.append(Metric(name, made, cut.program(outputs)))
    training.program = _program(cut.outputs)
    if ModeKeys.TRAIN in modes.modes:
        optimizers.describe(modes.modes[ModeKeys.TRAIN], modes.weights, training)
    if training.loss is not None:
        write_loops(training.loss, _bound(training.program))
    return training


_PREDICTION = "prediction "


def _key(metric: str, argument: str) -> str:
    return f"metric {metric} {argument}"


def _programs(
    modes: Modes, prepare: Callable[[Program], None], notes: list[str]
) -> tuple[dict[str, metrics.Found], dict[str, Program]]:
    """The metrics, and each mode's program: predictions, loss, arguments of metrics."""
    programs: dict[str, Program] = {}
    found: dict[str, metrics.Found] = {}
    for name, mode in modes.modes.items():
        outputs = {_PREDICTION + key: tensor for key, tensor in mode.predictions.items()}
        if name != ModeKeys.PREDICT:
            outputs["loss"] = mode.captured.spec.loss
        if name == ModeKeys.EVAL:
            found, more = metrics.find(mode)
            notes += more
            outputs |= {
                _key(metric, k): t
                for metric, each in found.items()
                for k, t in each.arguments.items()
            }
        programs[name] = mode.read(outputs, modes.weights)
        prepare(programs[name])
        unify(programs[name])
    return found, programs


def _loss(merged: Merged, train: Program | None, evaluation: Program | None) -> Value | None:
    if train is not None and evaluation is not None:
        return merged.pair(train.outputs["loss"], evaluation.outputs["loss"])
    one = train or evaluation
    return merged.value(one.outputs["loss"]) if one else None


def _program(outputs: dict[str, Value]) -> Program:
    program = Program({}, outputs)
    for node in program.nodes():
        if node.kind == "Input":
            program.inputs[node.attrs["key"]] = node.outputs[0]
    return program


def _bound(program: Program) -> dict[str, dict[str, Bound]]:
    """What trainable weights are bound to, by their names in Keras and their own."""
    found: dict[str, dict[str, Bound]] = {}
    for node in program.nodes():
        if node.kind == WEIGHT and node.attrs["weight"].trainable:
            weight = node.attrs["weight"]
            found.setdefault("", {})[weight.name] = Bound([weight])
        if node.kind == LAYER:
            for path, bound in node.layer.bound.items():
                for weight in (w for w in bound.weights if w.trainable):
                    found.setdefault(path.rsplit(".", 1)[-1], {})[weight.name] = bound
    owned = {name for key, each in found.items() if key for name in each}
    alone = {name: b for name, b in found.pop("", {}).items() if name not in owned}
    return {**found, "": alone} if alone else found


def _set_momentum(mode: Mode, program: Program) -> None:
    """Sets the momentum of batch normalizations, by what a step does to their averages."""
    operation = resource_graph.of(mode.captured.graph).operation
    targets = [graph_ops.as_operation(mode.captured.spec.train_op), *mode.captured.implicit_updates]
    decays: dict[str, Any] = {}
    for op in graph_ops.ancestors([operation(target) for target in targets], ()):
        if op.type == "AssignSubVariableOp" and op.inputs[1].op.type == "Mul":
            numbers = [optimizers.number(t) for t in op.inputs[1].op.inputs]
            decays[op.inputs[0].op.name] = next((n for n in numbers if n is not None), None)
    for node in program.nodes():
        if node.kind == LAYER and "moving_mean" in node.layer.bound and node.layer.call:
            [weight] = node.layer.bound["moving_mean"].weights
            decay = decays.get(weight.name, np.float32(0))  # without updates, averages stay
            node.layer.options["momentum"] = _one_minus(decay)


def _one_minus(decay: Any) -> float:
    """The number that the author wrote, whose difference to 1 is `decay`."""
    for digits in range(1, 9):
        number = round(1 - float(decay), digits)
        if np.float32(1.0 - number) == decay:
            return number
    return 1 - float(decay)
