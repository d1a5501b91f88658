"""The optimizer of a captured training step as one of Keras, by the operations that update."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops, sources
from tpu_estimator_compat.engine.refs import resource_graph
from tpu_estimator_compat.tools.to_keras.graph import Bound, Code, Weight
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.reading import read
from tpu_estimator_compat.tools.to_keras.script import Mode
from tpu_estimator_compat.tools.to_keras.simplify import simplify
from tpu_estimator_compat.tools.to_keras.training import Training
from tpu_estimator_compat.tools.to_keras.training.schedules import schedule

_STEP = tf.compat.v1.GraphKeys.GLOBAL_STEP


class UnlikeKerasError(ValueError):
    """What an optimizer does that none of Keras' does."""


@dataclasses.dataclass(frozen=True)
class _Row:
    """What an operation's optimizer is in Keras.

    Attributes:
      slots: by the operation's input, the attribute of the Keras optimizer.
      numbers: by the operation's input, the constructor's argument.
      fixed: other arguments.
    """

    cls: str
    slots: dict[str, str]
    numbers: dict[str, str]
    fixed: dict[str, Any] = dataclasses.field(default_factory=dict)


_BETAS = {"beta1": "beta_1", "beta2": "beta_2", "epsilon": "epsilon"}
_ADAM = _Row("Adam", {"m": "_momentums", "v": "_velocities"}, _BETAS)
_AMSGRAD = _Row("Adam", {**_ADAM.slots, "vhat": "_velocity_hats"}, _BETAS, {"amsgrad": True})
_RMS_PROP = _Row(
    "RMSprop",
    {"ms": "_velocities", "mom": "_momentums"},
    {"rho": "rho", "momentum": "momentum", "epsilon": "epsilon"},
)
_CENTERED = _Row(
    "RMSprop",
    {**_RMS_PROP.slots, "mg": "_average_gradients"},
    _RMS_PROP.numbers,
    {"centered": True},
)
_FTRL = _Row(
    "Ftrl",
    {"accum": "_accumulators", "linear": "_linears"},
    {
        "lr_power": "learning_rate_power",
        "l1": "l1_regularization_strength",
        "l2": "l2_regularization_strength",
        "l2_shrinkage": "l2_shrinkage_regularization_strength",
    },
)
_MOMENTUM = _Row("SGD", {"accum": "momentums"}, {"momentum": "momentum"})
_ADADELTA = _Row(
    "Adadelta",
    {"accum": "_accumulated_grads", "accum_update": "_accumulated_delta_vars"},
    {"rho": "rho", "epsilon": "epsilon"},
)
_ROWS = {
    "AdaMax": _Row("Adamax", {"m": "_m", "v": "_u"}, _BETAS),
    "Adadelta": _ADADELTA,
    # TensorFlow's has no epsilon: its accumulator begins above zero.
    "Adagrad": _Row("Adagrad", {"accum": "_accumulators"}, {}, {"epsilon": 0.0}),
    "Adam": _ADAM,
    "AdamWithAmsgrad": _AMSGRAD,
    "CenteredRMSProp": _CENTERED,
    "Ftrl": _FTRL,
    "FtrlV2": _FTRL,
    "GradientDescent": _Row("SGD", {}, {}),
    "Momentum": _MOMENTUM,
    "RMSProp": _RMS_PROP,
}
_DEFAULTS = {
    "amsgrad": False,
    "beta_1": 0.9,
    "beta_2": 0.999,
    "l1_regularization_strength": 0.0,
    "l2_regularization_strength": 0.0,
    "l2_shrinkage_regularization_strength": 0.0,
    "learning_rate_power": -0.5,
    "momentum": 0.0,
    "nesterov": False,
}
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
_ROWS_CLASS = '''\
@keras.saving.register_keras_serializable("model")
class {name}({base}):
    """{title} that leaves rows of embeddings alone, with their slots, which a batch does not use.

    So does TensorFlow's; Keras' own moves all rows.
    """

    def update_step(self, gradient, variable, learning_rate):
        if variable.name not in ({names},):
            super().update_step(gradient, variable, learning_rate)
            return
        index = self._get_variable_index(variable)
        changed = [variable, *(slots[index] for slots in ({slots},))]
        before = [ops.copy(each) for each in changed]
        gradient = ops.convert_to_tensor(gradient)
        used = ops.any(gradient != 0, axis=tuple(range(1, len(variable.shape))), keepdims=True)
        super().update_step(gradient, variable, learning_rate)
        for each, old in zip(changed, before):
            self.assign(each, ops.where(used, each, old))
'''


@dataclasses.dataclass
class _Update:
    """An operation that updates a variable by a gradient.

    Attributes:
      inputs: the operation's, by name.
    """

    op: tf.Operation
    row: _Row
    variable: str
    inputs: dict[str, tf.Tensor]
    is_sparse: bool = False


def describe(mode: Mode, weights: dict[str, Weight], training: Training) -> None:
    """Adds the optimizer of a captured training, or a note of why there is none."""
    train_op = graph_ops.as_operation(mode.captured.spec.train_op)
    targets = [train_op, *mode.captured.implicit_updates]
    operation = resource_graph.of(mode.captured.graph).operation
    ops = graph_ops.ancestors([operation(op) for op in targets], ())
    writes = [op for op in graph_ops.in_creation_order(ops) if graph_ops.written(op)]
    try:
        updates = _updates(writes, weights)
        _describe(mode, weights, updates, training)
    except UnlikeKerasError as error:
        training.notes.append(f"The file has no optimizer: {error}")
        return
    known = {_STEP} | {handle.op.name for u in updates for handle in graph_ops.written(u.op)}
    known |= {_variable(t) for u in updates for k, t in u.inputs.items() if "power" in k}
    _note_others([op for op in writes if op.inputs[0].op.name in weights], known, training)


def _variable(tensor: tf.Tensor) -> str:
    """The name of the variable that a tensor is a read of; empty for others."""
    op = _copied(tensor).op
    return op.inputs[0].op.name if op.type == "ReadVariableOp" else op.name if op.inputs else ""


def _copied(tensor: tf.Tensor) -> tf.Tensor:
    while tensor.op.type in ("Identity", "Cast", "Snapshot") or (
        tensor.op.type == "UnsortedSegmentSum"  # of a sparse gradient's rows with one index
    ):
        tensor = tensor.op.inputs[0]
    return tensor


@functools.lru_cache(maxsize=64)
def number(tensor: tf.Tensor) -> Any:
    """The number that a tensor always is; None if it depends on anything."""
    found = tf.get_static_value(_copied(tensor))
    if found is None and not tensor.shape.rank and tensor.dtype.is_floating:
        behind = _near(tensor, "")
        if {op.type for op in behind} <= _ARITHMETIC:
            program = read(tensor.graph, {}, {"number": tensor}, {})
            simplify(program)
            found = program.outputs["number"].constant
    return found


_ARITHMETIC = frozenset(
    {"Add", "AddV2", "Cast", "Const", "Identity", "Maximum", "Minimum", "Mul", "RealDiv", "Sub"}
)


def _updates(writes: Sequence[tf.Operation], weights: dict[str, Weight]) -> list[_Update]:
    found = []
    for op in writes:
        kind = op.type.removeprefix("Resource")
        if kind.startswith(("Apply", "SparseApply")):
            row = _ROWS.get(kind.removeprefix("Sparse").removeprefix("Apply"))
            if row is None:
                raise UnlikeKerasError(f"Keras has none like {op.type} ({_place(op)}).")
            names = [argument.name for argument in op.op_def.input_arg]
            inputs = dict(zip(names, op.inputs, strict=True))
            variable = op.inputs[0].op.name
            found.append(_Update(op, row, variable, inputs, kind.startswith("Sparse")))
    found += _scattered(writes, found)
    variables = [update.variable for update in found]
    trained = {name for name, weight in weights.items() if weight.trainable}
    if by_hand := [op for op in writes if trained & {t.op.name for t in graph_ops.written(op)}]:
        by_hand = [op for op in by_hand if op not in {update.op for update in found}]
    if by_hand:
        slots = {name.rsplit("/", 1)[-1] for name in weights}
        known = "keras.optimizers.AdamW" if {"adam_m", "adam_v"} <= slots else "one of Keras"
        raise UnlikeKerasError(
            f"{_place(by_hand[0])} updates {by_hand[0].inputs[0].op.name} by operations in Python. "
            f"Compile the model with {known}, or with a subclass that does the same."
        )
    if not found:
        raise UnlikeKerasError("nothing in train_op updates a trainable variable.")
    if len(variables) > len(set(variables)):
        raise UnlikeKerasError("it updates a variable several times in a step. Write the loop.")
    return found


def _scattered(writes: Sequence[tf.Operation], dense: list[_Update]) -> list[_Update]:
    """The updates of sparse gradients that Adam and gradient descent compute by other operations.

    Both do to all rows what they would do with a dense gradient.
    """
    found = []
    like = next((update for update in dense if update.row is _ADAM), None)
    for op in writes:
        name = op.inputs[0].op.name
        if op.type == "ResourceScatterAdd" and f"/update_{name}/" in f"/{op.name}":
            rate = op.inputs[2].op  # -gradient * rate
            if rate.type == "Mul" and rate.inputs[0].op.type == "Neg":
                inputs = {"alpha": rate.inputs[1], "grad": rate.inputs[0].op.inputs[0]}
                found.append(_Update(op, _ROWS["GradientDescent"], name, inputs, True))
        divided = _copied(op.inputs[1]).op if op.type == "AssignSubVariableOp" else op
        if like is None or divided.type != "RealDiv" or f"/update_{name}/" not in f"/{op.name}":
            continue
        scope = op.name.rpartition("/")[0] + "/"
        slots = [w.inputs[0] for w in writes if w.name.startswith(scope) and w is not op]
        first, second = list(dict.fromkeys(slot.op.outputs[0] for slot in slots))[:2]
        inputs = {**like.inputs, "m": first, "v": second}
        found.append(_Update(op, _ADAM, name, inputs, True))
    return found


def _describe(
    mode: Mode, weights: dict[str, Weight], updates: list[_Update], training: Training
) -> None:
    first = updates[0]
    rates = [u.inputs.get("lr", u.inputs.get("alpha")) for u in updates]
    numbers = [_numbers(update) for update in updates]
    same = all(
        u.row.cls == first.row.cls and n == numbers[0]
        for u, n in zip(updates, numbers, strict=True)
    )
    origins = {
        _copied(rate).name if number(rate) is None else float(number(rate)) for rate in rates
    }
    if not same or len(origins) > 1:
        kinds = sorted({update.row.cls for update in updates})
        raise UnlikeKerasError(
            f"variables have several optimizers or rates ({', '.join(kinds)}). Compile the model "
            "with keras.optimizers.MultiOptimizer, which has one for each path of variables."
        )
    rate, is_constant, classes = schedule(mode, _copied(rates[0]), weights)
    options = {**first.row.fixed, **numbers[0], **_clipping(updates)}
    options = {k: v for k, v in options.items() if _DEFAULTS.get(k) != v}
    slots = _slots(updates, options, weights)
    base = f"keras.optimizers.{first.row.cls}"
    if "momentums" in slots and options.get("momentum"):
        if is_constant:
            slots["momentums"] = {k: -float(rate) * v for k, v in slots["momentums"].items()}
        else:
            classes.append(_MOMENTUM_CLASS)
            base = "Momentum"
    given = [f"learning_rate={rate}", *(f"{k}={literal(v)}" for k, v in options.items())]
    sparse = [u.variable for u in updates if u.is_sparse and u.op.type.startswith("Resource")]
    if sparse and first.row.slots and first.row.cls != "Adagrad" and first.row is not _ADAM:
        classes.append(_of_rows(base, list(slots), sparse))
        base = f"{base.rsplit('.', 1)[-1]}OfRows"
    training.classes += classes
    training.optimizer = Code(f"{base}({', '.join(given)})")
    training.slots = slots
    training.step = _steps(first, weights, training, is_constant)
    for weight in weights.values():
        weight.trainable &= weight.name in {update.variable for update in updates}


def _of_rows(base: str, slots: list[str], sparse: list[str]) -> str:
    short = base.rsplit(".", 1)[-1]
    return _ROWS_CLASS.format(
        name=f"{short}OfRows",
        base=base,
        title=short,
        names=", ".join(f"{{{name}}}" for name in sparse),
        slots=", ".join(f"self.{slot}" for slot in slots) + ",",
    )


def _numbers(update: _Update) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for name, option in update.row.numbers.items():
        if name in update.inputs:
            value = number(update.inputs[name])
            if value is None:
                raise UnlikeKerasError(f"{option} is computed in each step ({_place(update.op)}).")
            numbers[option] = value
    if "use_nesterov" in update.op.node_def.attr and update.op.get_attr("use_nesterov"):
        if update.row is _ADAM:
            raise UnlikeKerasError("Adam with use_nesterov=True is none of Keras.")
        numbers["nesterov"] = True
    return numbers


def _slots(
    updates: list[_Update], options: dict[str, Any], weights: dict[str, Weight]
) -> dict[str, dict[str, np.ndarray]]:
    found: dict[str, dict[str, np.ndarray]] = {}
    for update in updates:
        for name, attribute in update.row.slots.items():
            if (
                attribute == "_momentums"
                and update.row.cls == "RMSprop"
                and not options.get("momentum")
            ):
                continue
            value = weights[update.inputs[name].op.name].value
            assert value is not None  # a script's weights have values
            found.setdefault(attribute, {})[update.variable] = value
    return found


def _steps(
    update: _Update, weights: dict[str, Weight], training: Training, is_constant: bool
) -> int:
    """The number of the optimizer's own steps, which corrects its bias."""
    power = update.inputs.get("beta1_power")
    weight = None if power is None else weights.get(_variable(power))
    if weight is None or weight.value is None or not weight.value > 0:
        return training.step
    taken = (
        round(math.log(float(weight.value)) / math.log(float(number(update.inputs["beta1"])))) - 1
    )
    if taken != training.step and not is_constant:
        training.notes.append(
            f"The optimizer has taken {taken} steps, but the global step is {training.step}: in "
            "Keras both are one count, here the global step."
        )
        return training.step
    return taken


def _clipping(updates: list[_Update]) -> dict[str, Any]:
    """The argument that clips gradients as all updates do; raises where they differ."""
    found = [
        _clip_of(_copied(update.inputs["grad"])) for update in updates if "grad" in update.inputs
    ]
    found += [_clip_of(_copied(u.inputs["delta"])) for u in updates if "delta" in u.inputs]
    if any(each != found[0] for each in found):
        raise UnlikeKerasError("it clips the gradients of some variables only, or differently.")
    name, value, norms = found[0] if found else ("", None, None)
    if name == "global_clipnorm" and norms != len(updates):
        raise UnlikeKerasError("it clips by the norm of other gradients than those it applies.")
    return {name: value} if name else {}


def _clip_of(gradient: tf.Tensor) -> tuple[str, Any, int | None]:
    """How a gradient is clipped: the argument of Keras, its value, the gradients in a norm."""
    op = gradient.op
    inputs = [_copied(tensor) for tensor in op.inputs]
    if op.type == "Mul" and any(t.shape.rank == 0 for t in inputs):
        scale = next(t for t in inputs if t.shape.rank == 0)
        behind = _near(scale, "Minimum")
        norms = {t.op for each in behind for t in each.inputs if t.op.type == "RealDiv"}
        squares = _near(scale, "L2Loss")
        if behind and norms and squares:
            clip = [number(t) for o in _near(scale, "Mul") for t in o.inputs]
            return (
                "global_clipnorm",
                next(c for c in clip if c is not None and c != 2),
                len(squares),
            )
    if op.type == "RealDiv" and inputs[1].op.type == "Maximum":
        numbers = [number(t) for t in inputs[1].op.inputs]
        if _near(inputs[1], "Sqrt"):
            return "clipnorm", next(n for n in numbers if n is not None), None
    low, high = _range(op)
    if low is not None:
        if low != -high:
            raise UnlikeKerasError(f"it clips to [{low}, {high}], which is not symmetric.")
        return "clipvalue", high, None
    return "", None, None


def _range(op: tf.Operation) -> tuple[Any, Any]:
    if op.type == "ClipByValue":
        return number(op.inputs[1]), number(op.inputs[2])
    inner = _copied(op.inputs[0]).op if op.type == "Maximum" else None
    if inner is not None and inner.type == "Minimum":
        return number(op.inputs[1]), number(inner.inputs[1])
    return None, None


def _near(tensor: tf.Tensor, kind: str, depth: int = 12) -> list[tf.Operation]:
    """The operations of a kind, of any if empty, on which a scalar depends, the nearest ones."""
    seen: dict[tf.Operation, None] = {}
    stack = [(tensor.op, 0)]
    while stack:
        op, level = stack.pop()
        if op not in seen and level <= depth:
            seen[op] = None
            stack += [(t.op, level + 1) for t in op.inputs if op.type != "L2Loss"]
    return [op for op in seen if kind in ("", op.type)]


def _note_others(writes: Sequence[tf.Operation], known: set[str], training: Training) -> None:
    """Notes variables that a step changes besides: averages, counters."""
    others: dict[str, tf.Operation] = {}
    for op in writes:
        for handle in graph_ops.written(op):
            name = handle.op.name
            if name not in known and not name.endswith(("moving_mean", "moving_variance")):
                others.setdefault(name, op)
    for name, op in others.items():
        training.notes.append(
            f"A training step changes {name} ({op.type}, {_place(op)}), and the file does not: do "
            "it in a callback, or for averages by the optimizer's use_ema."
        )


def _place(op: tf.Operation) -> str:
    return str(sources.of_operation(op) or op.name)


def fill(optimizer: Any, training: Training, variables: Sequence[tuple[Any, Bound]]) -> None:
    """Gives a built Keras optimizer its slots and its step.

    Args:
      variables: the model's trainable variables, each with what it is made of.
    """
    optimizer.iterations.assign(training.step)
    bound = {id(variable): each for variable, each in variables}
    for attribute, values in training.slots.items():
        slots = getattr(optimizer, attribute)
        for variable in optimizer._trainable_variables:
            each = bound[id(variable)]
            arrays = [values[weight.name] for weight in each.weights]
            made: Callable[..., np.ndarray] = each.make or (lambda array: array)
            slots[optimizer._get_variable_index(variable)].assign(made(*arrays))
