"""The optimizer of a captured training step as one of Keras, by the operations that update."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops, sources
from tpu_estimator_compat.engine.refs import resource_graph
from tpu_estimator_compat.tools.to_keras.graph import Code, Weight
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
    "KerasMomentum": _MOMENTUM,
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

    @property
    def gradient(self) -> tf.Tensor:
        return self.inputs["grad"] if "grad" in self.inputs else self.inputs["delta"]

    @property
    def rate(self) -> tf.Tensor:
        return self.inputs["lr"] if "lr" in self.inputs else self.inputs["alpha"]


@dataclasses.dataclass
class Step:
    """What a training step writes.

    Attributes:
      updates: by gradients; `reason` says why there are none.
      loss: the scalar that is minimized.
    """

    writes: list[tf.Operation]
    loss: tf.Tensor
    updates: list[_Update] = dataclasses.field(default_factory=list)
    reason: str = ""


def step_of(mode: Mode, weights: dict[str, Weight]) -> Step:
    """The step of a captured training, and what it minimizes."""
    targets = [graph_ops.as_operation(mode.captured.spec.train_op), *mode.captured.implicit_updates]
    operation = resource_graph.of(mode.captured.graph).operation
    ops = graph_ops.ancestors([operation(op) for op in targets], ())
    writes = [op for op in graph_ops.in_creation_order(ops) if graph_ops.written(op)]
    assert mode.captured.spec.loss is not None  # a spec of TRAIN has one
    step = Step(writes, mode.captured.spec.loss)
    try:
        step.updates = _updates(writes, weights)
        step.loss = _minimized(mode, step.updates)
    except UnlikeKerasError as error:
        step.reason = str(error)
    return step


def describe(mode: Mode, step: Step, weights: dict[str, Weight], training: Training) -> None:
    """Adds the optimizer of a captured training, or a note of why there is none."""
    try:
        if step.reason:
            raise UnlikeKerasError(step.reason)
        _describe(mode, weights, step.updates, training)
    except UnlikeKerasError as error:
        training.notes.append(f"The file has no optimizer: {error}")
        return
    if step.loss is not mode.captured.spec.loss:
        training.notes.append(
            f"The optimizer minimizes {step.loss.op.name}, not the loss of the spec, which is "
            "reported. In training, compute_loss gives what is minimized."
        )
    known = {_STEP} | {handle.op.name for u in step.updates for handle in graph_ops.written(u.op)}
    known |= {_variable(tensor) for u in step.updates for tensor in u.inputs.values()}
    _note_others([op for op in step.writes if op.inputs[0].op.name in weights], known, training)


def _minimized(mode: Mode, updates: list[_Update]) -> tf.Tensor:
    """The scalar whose gradients the updates take, as their values for a batch show."""
    graph = mode.captured.graph
    assert mode.captured.spec.loss is not None  # a spec of TRAIN has one
    candidates = [mode.captured.spec.loss]
    for op in graph.get_operations():
        if op.name.endswith("/grad_ys_0"):
            for user in op.outputs[0].consumers():
                name = user.name.partition("/")[2].partition("_grad/")[0]
                with contextlib.suppress(KeyError, ValueError):
                    candidates.append(graph.get_tensor_by_name(f"{name}:0"))
    dense = [update for update in updates if not update.is_sparse]
    variables = {v.op.name: v for v in graph.get_collection("trainable_variables")}
    taken = [graph.get_tensor_by_name(_clip_of(_copied(u.gradient)).inner.name) for u in dense]
    for loss in dict.fromkeys(each.ref() for each in candidates if each.shape.rank == 0):
        with mode.captured.in_graph():
            made = tf.gradients(loss.deref(), [variables[u.variable] for u in dense])
            given = [tf.convert_to_tensor(g) if g is not None else tf.zeros([]) for g in made]
        pairs = mode.run(list(zip(taken, given, strict=True)))
        if all(a.shape == b.shape and np.allclose(a, b, 1e-3, 1e-6) for a, b in pairs):
            found: tf.Tensor = loss.deref()
            return found
    raise UnlikeKerasError("it applies other gradients than those of the loss.")


def _variable(tensor: tf.Tensor) -> str:
    """The name of the variable that a tensor is a read of; empty for others."""
    op = _copied(tensor).op
    return op.inputs[0].op.name if op.type == "ReadVariableOp" else ""


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
    rates = [update.rate for update in updates]
    numbers = [_numbers(update, weights) for update in updates]
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
    if "momentums" in slots and "KerasMomentum" not in first.op.type:
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


def _numbers(update: _Update, weights: dict[str, Weight]) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for name, option in update.row.numbers.items():
        if name in update.inputs:
            value = number(update.inputs[name])
            variable = weights.get(_variable(update.inputs[name]))
            if variable is not None and not variable.shape:  # as Keras 2 has them
                value = variable.value
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


@dataclasses.dataclass
class _Clip:
    """How a gradient is clipped: the argument of Keras, empty for none, and its value.

    Attributes:
      inner: the gradient before.
      norms: how many gradients have a part in the norm.
    """

    inner: tf.Tensor
    name: str = ""
    value: Any = None
    norms: int = 0


def _clipping(updates: list[_Update]) -> dict[str, Any]:
    """The argument that clips gradients as all updates do; raises where they differ."""
    first, *others = (_clip_of(_copied(update.gradient)) for update in updates)
    if any((each.name, each.value) != (first.name, first.value) for each in others):
        raise UnlikeKerasError("it clips the gradients of some variables only, or differently.")
    if first.name == "global_clipnorm" and first.norms != len(updates):
        raise UnlikeKerasError("it clips by the norm of other gradients than those it applies.")
    return {first.name: first.value} if first.name else {}


def _clip_of(gradient: tf.Tensor) -> _Clip:
    op = gradient.op
    inputs = [_copied(tensor) for tensor in op.inputs]
    if op.type == "Mul" and any(t.shape.rank == 0 for t in inputs):
        scale = next(t for t in inputs if t.shape.rank == 0)
        squares = _near(scale, "L2Loss")
        clip = [number(t) for each in _near(scale, "Mul") for t in each.inputs]
        clip = [each for each in clip if each is not None and each != 2]  # of norm = sqrt(2 * sum)
        if squares and clip and _near(scale, "Minimum"):
            inner = next(t for t in inputs if t is not scale)
            return _Clip(inner, "global_clipnorm", clip[0], len(squares))
    if op.type == "RealDiv" and inputs[1].op.type == "Maximum" and _near(inputs[1], "Sqrt"):
        numbers = [number(t) for t in inputs[1].op.inputs]
        value = next((n for n in numbers if n is not None), None)
        if value is not None and inputs[0].op.type == "Mul":
            return _Clip(_copied(inputs[0].op.inputs[0]), "clipnorm", value)
    low, high, inner = _range(op)
    if low is None:
        return _Clip(gradient)
    if low != -high:
        raise UnlikeKerasError(f"it clips to [{low}, {high}], which is not symmetric.")
    return _Clip(inner, "clipvalue", high)


def _range(op: tf.Operation) -> tuple[Any, Any, Any]:
    if op.type == "ClipByValue":
        return number(op.inputs[1]), number(op.inputs[2]), _copied(op.inputs[0])
    inner = _copied(op.inputs[0]).op if op.type == "Maximum" else None
    if inner is not None and inner.type == "Minimum":
        return number(op.inputs[1]), number(inner.inputs[1]), _copied(inner.inputs[0])
    return None, None, None


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
            if name not in known and not name.endswith(("moving_mean", "moving_variance", "/iter")):
                others.setdefault(name, op)
    for name, op in others.items():
        training.notes.append(
            f"A training step changes {name} ({op.type}, {_place(op)}), and the file does not: do "
            "it in a callback, or for averages by the optimizer's use_ema."
        )


def _place(op: tf.Operation) -> str:
    return str(sources.of_operation(op) or op.name)
