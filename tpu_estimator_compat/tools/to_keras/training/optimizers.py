"""The optimizer of a captured training step as one of Keras, by the operations that update."""

from __future__ import annotations

import inspect
import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.tools.to_keras.graph import LAYER, Code, Program, Weights
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.script import Mode
from tpu_estimator_compat.tools.to_keras.training import Training, steps
from tpu_estimator_compat.tools.to_keras.training.schedules import schedule
from tpu_estimator_compat.tools.to_keras.training.steps import UnlikeKerasError, Update, number

_STEP = tf.compat.v1.GraphKeys.GLOBAL_STEP


_MOMENTUM_CLASS = '''\
@keras.saving.register_keras_serializable("model")
class Momentum(keras.optimizers.SGD):
    """Momentum as TensorFlow's: the velocity has no rate in it.

    Keras' SGD adds up gradients times the rates of their own steps, which a schedule changes.
    """

    def update_step(self, gradient, variable, learning_rate):
        rate = ops.cast(learning_rate, variable.dtype)
        gradient = ops.cast(gradient, variable.dtype)
        velocity = self.momentums[self._get_variable_index(variable)]
        self.assign(velocity, velocity * self.momentum + gradient)
        step = gradient + velocity * self.momentum if self.nesterov else velocity
        self.assign_sub(variable, rate * step)
'''


_SPARSE_CLASS = '''\
@keras.saving.register_keras_serializable("model")
class {name}({base}):
    """Adds up the gradients of a row of embeddings before all else, as TensorFlow's optimizers.

    Keras' own squares them one by one, where TensorFlow is its backend.
    """

    def update_step(self, gradient, variable, learning_rate):
        gradient = ops.add(ops.zeros(variable.shape, variable.dtype), gradient)
        super().update_step(gradient, variable, learning_rate)
'''
_ROWS_CLASS = '''\
@keras.saving.register_keras_serializable("model")
class {name}({base}):
    """Leaves rows of embeddings, and their slots, as they are if a batch does not use them.

    So do TensorFlow's optimizers; Keras' own moves all rows.
    """

    def update_step(self, gradient, variable, learning_rate):
        gradient = ops.add(ops.zeros(variable.shape, variable.dtype), gradient)
        if variable.name != "embeddings":
            super().update_step(gradient, variable, learning_rate)
            return
        index = self._get_variable_index(variable)
        changed = [variable, *(slots[index] for slots in ({slots}))]
        before = [ops.copy(each) for each in changed]
        super().update_step(gradient, variable, learning_rate)
        used = ops.any(gradient != 0, axis=-1, keepdims=True)
        for each, old in zip(changed, before):
            self.assign(each, ops.where(used, each.value, old))
'''
_SAME_FOR_ROWS = ("Adagrad", "Adam")  # and descent, which has no slots


def describe(mode: Mode, step: steps.Step, weights: Weights, training: Training) -> None:
    """Adds the optimizer of a captured training, or a note of why there is none."""
    try:
        if step.reason:
            raise UnlikeKerasError(step.reason)
        _describe(mode, weights, step, training)
    except ValueError as error:
        training.notes.append(f"The file has no optimizer: {error}")
        return
    if step.loss is not mode.captured.spec.loss:
        training.notes.append(
            f"The optimizer minimizes {step.loss.op.name}, not the loss of the spec, which is "
            "reported. In training, compute_loss gives what is minimized."
        )
    _note_others(step, weights, training)


def _describe(mode: Mode, weights: Weights, step: steps.Step, training: Training) -> None:
    updates = step.updates
    first = updates[0]
    numbers = _common_numbers(updates, weights)
    rate, is_constant, classes = schedule(mode, first.rate, weights, step.written)
    options = {**first.row.fixed, **numbers, **steps.clipping(updates)}
    given = inspect.signature(getattr(keras.optimizers, first.row.cls)).parameters
    options = {k: v for k, v in options.items() if given[k].default != v}
    slots = _slots(updates, weights)
    if first.row.cls == "RMSprop" and not options.get("momentum"):
        slots.pop("_momentums")
    base = f"keras.optimizers.{first.row.cls}"
    if "momentums" in slots and "KerasMomentum" not in first.op.type:
        if is_constant:
            slots["momentums"] = {k: -float(rate) * v for k, v in slots["momentums"].items()}
        else:
            classes.append(_MOMENTUM_CLASS)
            base = "Momentum"
    if sparse := {update.variable for update in updates if update.is_sparse}:
        short, of = base.rpartition(".")[2], base
        base, source = f"Dense{short}", _SPARSE_CLASS
        if slots and first.row.cls not in _SAME_FOR_ROWS:
            if _embeddings(training.program) != sparse:
                raise UnlikeKerasError("it updates rows of variables that are no embeddings alone.")
            base, source = f"{short}OfRows", _ROWS_CLASS
        listed = "".join(f"self.{slot}, " for slot in slots).strip()
        classes.append(source.format(name=base, base=of, slots=listed))
        if any("clip" in option for option in options):
            training.notes.append(
                "Gradients are clipped before those of a row of embeddings are added up: so is it "
                "in Keras on TensorFlow, but on JAX and PyTorch after."
            )
    rate_of_averages, averages = steps.averages_of(step)
    if averages:
        options |= {"use_ema": True, "ema_momentum": steps.one_minus(np.float32(rate_of_averages))}
        slots["_model_variables_moving_average"] = {
            variable: weights[name].value for variable, name in averages.items()
        }
        training.notes.append(
            "Averages of the weights begin in Keras with those after the first step, not before; "
            "at the end of fit() they replace the weights, which a callback may save before."
        )
    texts = [f"learning_rate={rate}", *(f"{k}={literal(v)}" for k, v in options.items())]
    training.classes += classes
    training.optimizer = Code(f"{base}({', '.join(texts)})")
    training.slots = slots
    training.step = _steps(first, weights, training, is_constant)
    for weight in weights.values():
        weight.trainable &= weight.name in {update.variable for update in updates}


def _common_numbers(updates: list[Update], weights: Weights) -> dict[str, Any]:
    """The constants of all updates; raises UnlikeKerasError where they or the rates differ."""
    first = updates[0]
    rates = [update.rate for update in updates]
    numbers = [_numbers(update, weights) for update in updates]
    same = all(
        u.row.cls == first.row.cls and n == numbers[0]
        for u, n in zip(updates, numbers, strict=True)
    )
    origins = {rate.name if number(rate) is None else float(number(rate)) for rate in rates}
    if not same or len(origins) > 1:
        kinds = sorted({update.row.cls for update in updates})
        raise UnlikeKerasError(
            f"variables have several optimizers or rates ({', '.join(kinds)}). Compile the model "
            "with keras.optimizers.MultiOptimizer, which has one for each path of variables."
        )
    return numbers[0]


def _embeddings(program: Program) -> set[str]:
    """The names of trainable weights that are tables of embeddings in Keras."""
    layers = (node.layer for node in program.nodes() if node.kind == LAYER)
    found = (w for each in layers if "embeddings" in each.bound for w in each.weights)
    return {weight.name for weight in found if weight.trainable}


def _numbers(update: Update, weights: Weights) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for name, option in update.row.numbers.items():
        if name in update.inputs:
            value = number(update.inputs[name])
            variable = weights.get(steps.variable_of(update.inputs[name]))
            if variable is not None and not variable.shape:  # as Keras 2 has them
                value = variable.value
            if value is None:
                raise UnlikeKerasError(
                    f"{option} is computed in each step ({steps.place(update.op)})."
                )
            numbers[option] = value
    if "AdagradV2" in update.op.type:
        accumulated = weights[update.inputs["accum"].op.name].value
        if numbers["epsilon"] > 1e-6 * accumulated.min(initial=1.0):
            raise UnlikeKerasError("it adds epsilon to the root, and Keras' Adagrad in it.")
    if "use_nesterov" in update.op.node_def.attr and update.op.get_attr("use_nesterov"):
        if update.row is steps.ADAM:
            raise UnlikeKerasError("Adam with use_nesterov=True is none of Keras.")
        numbers["nesterov"] = True
    return numbers


def _slots(updates: list[Update], weights: Weights) -> dict[str, dict[str, np.ndarray]]:
    found: dict[str, dict[str, np.ndarray]] = {}
    for update in updates:
        for name, attribute in update.row.slots.items():
            value = weights[update.inputs[name].op.name].value
            found.setdefault(attribute, {})[update.variable] = value
    return found


def _steps(update: Update, weights: Weights, training: Training, is_constant: bool) -> int:
    """The number of the optimizer's own steps, which corrects its bias."""
    power = update.inputs.get("beta1_power")
    weight = None if power is None else weights.get(steps.variable_of(power))
    if weight is None or weight.value is None or not weight.value > 0:
        return training.step
    beta = float(number(update.inputs["beta1"]))
    taken = round(math.log(float(weight.value)) / math.log(beta)) - 1
    if taken != training.step and not is_constant:
        training.notes.append(
            f"The optimizer has taken {taken} steps, but the global step is {training.step}: in "
            "Keras both are one count, here the global step."
        )
        return training.step
    return taken


def _note_others(step: steps.Step, weights: Weights, training: Training) -> None:
    """Notes variables that a step changes besides: averages, counters."""
    assert training.loss is not None
    known = {_STEP} - {*training.program.weights(), *training.loss.weights()}
    known |= {handle.op.name for u in step.updates for handle in graph_ops.written(u.op)}
    taken = [tensor for u in step.updates for tensor in u.inputs.values()]
    known |= {name for tensor in taken for name in (steps.variable_of(tensor), tensor.op.name)}
    known |= {*steps.averages_of(step)[1].values()}
    others: dict[str, list[str]] = {}
    for op in (op for op in step.writes if op.inputs[0].op.name in weights):
        for name in (handle.op.name for handle in graph_ops.written(op)):
            told = name in known or name.endswith(("moving_mean", "moving_variance", "/iter"))
            known.add(name)
            if not told:
                others.setdefault(f"({op.type}, {steps.place(op)})", []).append(name)
    training.notes += [
        f"A training step changes {', '.join(names)} {where}, and the file does not: do it in a "
        "callback."
        for where, names in others.items()
    ]
