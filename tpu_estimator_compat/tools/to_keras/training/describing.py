"""Describes how a captured model trains: from the graphs of its modes to a `Training`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.graph import Bound, Code, Program, Value
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.script import Modes
from tpu_estimator_compat.tools.to_keras.training import (
    Metric,
    Training,
    losses,
    metrics,
    optimizers,
    steps,
)
from tpu_estimator_compat.tools.to_keras.training.merging import CrossedError, Merged


def describe(modes: Modes, step: steps.Step, prepare: Callable[[Program], None]) -> Training:
    """How a model trains and evaluates, with one program of all its modes.

    Args:
      prepare: simplifies a program, and recognizes its layers, in place.
    """
    notes: list[str] = []
    found, programs = _programs(modes, step.loss, prepare, notes)
    train, evaluation = programs[ModeKeys.TRAIN], programs.get(ModeKeys.EVAL)
    _set_momentum(step, train, notes)
    others = [programs[m] for m in (ModeKeys.PREDICT, ModeKeys.EVAL) if m in programs]
    merged, loss = _merged(train, evaluation, others)
    served = next(m for m in (ModeKeys.PREDICT, ModeKeys.EVAL, ModeKeys.TRAIN) if m in programs)
    outputs, names = programs[served].outputs, modes.modes[served].predictions
    predictions = {name: merged.value(outputs[_PREDICTION + name]) for name in names}
    cut = losses.Cut(predictions)
    training = Training(Program({}, {}), step=modes.step, notes=notes)
    training.loss = cut.program({"loss": loss})
    for name, each in found.items():
        assert evaluation is not None  # which has metrics
        outputs = {k: merged.value(evaluation.outputs[_key(name, k)]) for k in each.arguments}
        given = ", ".join(f"{k}={literal(v)}" for k, v in {**each.options, "name": name}.items())
        made = Code(f"{each.path}({given})")
        training.classes += [each.source] if each.source else []
        program = cut.program(outputs)
        for node in program.nodes():
            if node.kind == g.EXPRESSION and "training" in node.attrs["text"]:
                program.replace(node.outputs[0], node.inputs[1])
        training.metrics.append(Metric(name, made, program))
    training.program = Program({}, cut.outputs)
    for node in training.program.nodes():
        if node.kind == g.INPUT:
            training.program.inputs[node.attrs["key"]] = node.outputs[0]
        if node.kind == g.LAYER and node.attrs.get("fused"):
            node.layer.cls = "FusedBatchNormalization"
            training.classes.append(_FUSED_CLASS)
    optimizers.describe(modes.modes[ModeKeys.TRAIN], step, modes.weights, training)
    bound = _bound(training.program)
    losses.write_loops(training.loss, bound)
    programs_of_metrics = [metric.program for metric in training.metrics]
    for program in (training.program, training.loss, *programs_of_metrics):
        if left := losses.put_back(program, bound):
            training.loss = training.optimizer = None
            training.notes.append(
                f"The file has no loss: it regularizes {', '.join(left)}, which Keras holds in "
                "another form, such as with the bias of forget gates added. Write compute_loss."
            )
    return training


def _merged(
    train: Program, evaluation: Program | None, others: list[Program]
) -> tuple[Merged, Value]:
    """The merged values of all programs, and the loss among them."""
    trained = list(train.outputs.values())
    used = [value for program in others for value in program.outputs.values()]
    loss = train.outputs["loss"]
    other = evaluation.outputs["loss"] if evaluation else loss
    with contextlib.suppress(CrossedError):
        merged = Merged(trained, used)
        return merged, merged.pair(loss, other)
    merged = Merged(trained, used, aligns=False)
    return merged, merged.pair(loss, other)


_PREDICTION = "prediction "


def _key(metric: str, argument: str) -> str:
    return f"metric {metric} {argument}"


def _programs(
    modes: Modes, minimized: tf.Tensor, prepare: Callable[[Program], None], notes: list[str]
) -> tuple[dict[str, metrics.Found], dict[str, Program]]:
    """The metrics, and each mode's program: predictions, loss, arguments of metrics."""
    programs: dict[str, Program] = {}
    found: dict[str, metrics.Found] = {}
    for name, mode in modes.modes.items():
        outputs = {_PREDICTION + key: tensor for key, tensor in mode.predictions.items()}
        if name != ModeKeys.PREDICT:
            outputs["loss"] = minimized if name == ModeKeys.TRAIN else mode.captured.spec.loss
        if name == ModeKeys.EVAL:
            with mode.captured.in_graph():
                found, more = metrics.find(mode.captured.functions.metrics, mode.metric_calls)
            notes += more
            outputs |= {
                _key(metric, k): t
                for metric, each in found.items()
                for k, t in each.arguments.items()
            }
        programs[name] = mode.read(outputs, modes.weights)
        losses.set_apart(programs[name])
        prepare(programs[name])
    return found, programs


def _bound(program: Program) -> dict[str, dict[str, Bound]]:
    """What trainable weights are bound to, by their names in Keras and their own."""
    found: dict[str, dict[str, Bound]] = {}
    for node in program.nodes():
        for path, bound in node.layer.bound.items() if node.kind == g.LAYER else ():
            for weight in (w for w in bound.weights if w.trainable):
                found.setdefault(path.rsplit(".", 1)[-1], {})[weight.name] = bound
    owned = {name for each in found.values() for name in each}
    weights = [n.attrs["weight"] for n in program.nodes() if n.kind == g.WEIGHT]
    alone = {w.name: Bound([w]) for w in weights if w.trainable and w.name not in owned}
    return {**found, "": alone} if alone else found


_FUSED_CLASS = '''\
@keras.saving.register_keras_serializable("model")
class FusedBatchNormalization(layers.BatchNormalization):
    """Averages the unbiased variance of batches, as TensorFlow's fused kernel does."""

    def call(self, inputs, training=None, mask=None):
        before = ops.copy(self.moving_variance)
        outputs = super().call(inputs, training=training, mask=mask)
        if training and self.trainable:
            count = ops.cast(ops.size(inputs) // inputs.shape[self.axis], before.dtype)
            biased = self.moving_variance - self.momentum * before
            self.moving_variance.assign_add(biased / ops.maximum(count - 1, 1))
        return outputs
'''


def _set_momentum(step: steps.Step, program: Program, notes: list[str]) -> None:
    """Sets the momentum of batch normalizations, by what a step does to their averages."""
    decays: dict[str, Any] = {}
    for op in step.writes:
        if op.type == "AssignSubVariableOp" and op.inputs[1].op.type == "Mul":
            numbers = [steps.number(t) for t in op.inputs[1].op.inputs]
            decays[op.inputs[0].op.name] = next((n for n in numbers if n is not None), None)
    for node in program.nodes():
        if node.kind != g.LAYER or "moving_mean" not in node.layer.bound or not node.layer.call:
            continue
        [weight] = node.layer.bound["moving_mean"].weights
        if decays.get(weight.name) is None:
            notes.append(f"A training step does not update {weight.name}, nor does the file.")
        momentum = steps.one_minus(decays.get(weight.name) or 0.0)
        if momentum != 0.99:  # Keras' default
            node.layer.options["momentum"] = momentum
