"""What a captured training step updates, by which gradients: the operations of optimizers."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops, sources
from tpu_estimator_compat.engine.refs import resource_graph
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.to_keras.graph import Weights
from tpu_estimator_compat.tools.to_keras.reading import read
from tpu_estimator_compat.tools.to_keras.script import Mode, Modes
from tpu_estimator_compat.tools.to_keras.simplify import simplify


class UnlikeKerasError(ValueError):
    """What an optimizer does that none of Keras' does."""


@dataclasses.dataclass(frozen=True)
class Row:
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
ADAM = Row("Adam", {"m": "_momentums", "v": "_velocities"}, _BETAS)
_RMS = {"ms": "_velocities", "mom": "_momentums"}
_RHO = {"rho": "rho", "momentum": "momentum", "epsilon": "epsilon"}
_FTRL = Row(
    "Ftrl",
    {"accum": "_accumulators", "linear": "_linears"},
    {
        "lr_power": "learning_rate_power",
        "l1": "l1_regularization_strength",
        "l2": "l2_regularization_strength",
        "l2_shrinkage": "l2_shrinkage_regularization_strength",
    },
)
_MOMENTUM = Row("SGD", {"accum": "momentums"}, {"momentum": "momentum"})
_ROWS = {
    "AdaMax": Row("Adamax", {"m": "_m", "v": "_u"}, _BETAS),
    "Adadelta": Row(
        "Adadelta",
        {"accum": "_accumulated_grads", "accum_update": "_accumulated_delta_vars"},
        {"rho": "rho", "epsilon": "epsilon"},
    ),
    # TensorFlow's has no epsilon: its accumulator begins above zero.
    "Adagrad": Row("Adagrad", {"accum": "_accumulators"}, {}, {"epsilon": 0.0}),
    "AdagradV2": Row("Adagrad", {"accum": "_accumulators"}, {"epsilon": "epsilon"}),
    "Adam": ADAM,
    "AdamWithAmsgrad": Row(
        "Adam", {**ADAM.slots, "vhat": "_velocity_hats"}, _BETAS, {"amsgrad": True}
    ),
    "CenteredRMSProp": Row(
        "RMSprop", {**_RMS, "mg": "_average_gradients"}, _RHO, {"centered": True}
    ),
    "Ftrl": _FTRL,
    "FtrlV2": _FTRL,
    "KerasMomentum": _MOMENTUM,
    "GradientDescent": Row("SGD", {}, {}),
    "Momentum": _MOMENTUM,
    "RMSProp": Row("RMSprop", _RMS, _RHO),
}


@dataclasses.dataclass
class Update:
    """An operation that updates a variable by a gradient.

    Attributes:
      inputs: the operation's, by name.
    """

    op: tf.Operation
    row: Row
    variable: str
    inputs: dict[str, tf.Tensor]
    is_sparse: bool = False

    @property
    def gradient(self) -> tf.Tensor:
        return _copied(self.inputs["grad"] if "grad" in self.inputs else self.inputs["delta"])

    @property
    def rate(self) -> tf.Tensor:
        return _copied(self.inputs["lr"] if "lr" in self.inputs else self.inputs["alpha"])


@dataclasses.dataclass
class Step:
    """What a training step writes.

    Attributes:
      updates: by gradients; `reason` says why there are none.
      loss: the scalar that is minimized.
    """

    writes: list[tf.Operation]
    loss: tf.Tensor
    updates: list[Update] = dataclasses.field(default_factory=list)
    reason: str = ""

    @property
    def written(self) -> set[str]:
        """The names of the variables."""
        return {handle.op.name for op in self.writes for handle in graph_ops.written(op)}


def step_of(modes: Modes) -> Step:
    """The step of the captured training, and what it minimizes."""
    mode = modes.modes[ModeKeys.TRAIN]
    targets = [graph_ops.as_operation(mode.captured.spec.train_op), *mode.captured.implicit_updates]
    operation = resource_graph.of(mode.captured.graph).operation
    ops = graph_ops.ancestors([operation(op) for op in targets], ())
    writes = [op for op in graph_ops.in_creation_order(ops) if graph_ops.written(op)]
    assert mode.captured.spec.loss is not None  # a spec of TRAIN has one
    step = Step(writes, mode.captured.spec.loss)
    try:
        step.updates = _updates(writes, modes.weights)
        step.loss = _minimized(mode, step.updates)
    except UnlikeKerasError as error:
        step.reason = str(error)
    return step


def averages_of(step: Step) -> tuple[float, dict[str, str]]:
    """The rate and, by the trained variable, the names of averages that are moved after a step."""
    updates = {update.variable: update.op for update in step.updates}
    found: dict[str, str] = {}
    rates = set()
    for op in step.writes:
        moved = op.inputs[1].op if op.type == "AssignSubVariableOp" else op
        difference = moved.inputs[0].op if moved.type == "Mul" else moved
        if difference.type != "Sub" or variable_of(difference.inputs[0]) != op.inputs[0].op.name:
            continue
        variable = variable_of(difference.inputs[1])
        if updates.get(variable) in graph_ops.ancestors([difference], ()):
            found[variable] = op.inputs[0].op.name
            rate = number(moved.inputs[1])
            rates.add(None if rate is None else float(rate))
    [rate, *others] = rates or [None]
    if rate is None or others or found.keys() != updates.keys():
        return 0.0, {}
    return rate, found


def one_minus(rate: Any) -> float:
    """The number that the author wrote, whose difference to 1 is `rate`."""
    for digits in range(1, 9):
        number = round(1 - float(rate), digits)
        if rate in (np.float32(1.0 - number), np.float32(1.0) - np.float32(number)):
            return number
    return 1 - float(rate)


def _minimized(mode: Mode, updates: list[Update]) -> tf.Tensor:
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
    with mode.captured.in_graph():  # a branch's own tensor cannot be fetched
        inner = [_clip_of(update.gradient).inner.name for update in dense]
        taken = [tf.identity(graph.get_tensor_by_name(name)) for name in inner]
    several: dict[str, str] = {}
    for loss in dict.fromkeys(each.ref() for each in candidates if each.shape.rank == 0):
        with mode.captured.in_graph(), resource_graph.apart(graph):
            made = tf.gradients(loss.deref(), [variables[u.variable] for u in dense])
            given = [tf.convert_to_tensor(g) if g is not None else tf.zeros([]) for g in made]
        pairs = mode.run(list(zip(taken, given, strict=True)))
        same = [a.shape == b.shape and np.allclose(a, b, 1e-3, 1e-6, True) for a, b in pairs]
        if all(same):  # NaN too, the gradient of the norm of zeros
            found: tf.Tensor = loss.deref()
            return found
        agreed = (update for update, is_same in zip(dense, same, strict=True) if is_same)
        several |= {update.variable: loss.deref().op.name for update in agreed}
    if len(several) < len(dense):
        raise UnlikeKerasError("it applies other gradients than those of the loss.")
    parts = {f"{name.partition('/')[0]} by {loss}" for name, loss in several.items()}
    raise UnlikeKerasError(
        f"it minimizes several losses, {', '.join(sorted(parts))}. Write the model's train_step."
    )


def variable_of(tensor: tf.Tensor) -> str:
    """The name of the variable that a tensor is a read of; empty for others."""
    op = _copied(tensor).op
    return op.inputs[0].op.name if op.type == "ReadVariableOp" else ""


def _copied(tensor: tf.Tensor) -> tf.Tensor:
    while tensor.op.type in ("Identity", "Cast", "Snapshot") or (
        tensor.op.type == "UnsortedSegmentSum"  # of a sparse gradient's rows with one index
    ):
        tensor = tensor.op.inputs[0]
    return tensor


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


def _updates(writes: Sequence[tf.Operation], weights: Weights) -> list[Update]:
    found = []
    for op in writes:
        kind = op.type.removeprefix("Resource")
        if kind.startswith(("Apply", "SparseApply")):
            row = _ROWS.get(kind.removeprefix("Sparse").removeprefix("Apply"))
            if row is None:
                raise UnlikeKerasError(f"Keras has none like {op.type} ({place(op)}).")
            names = [argument.name for argument in op.op_def.input_arg]
            inputs = dict(zip(names, op.inputs, strict=True))
            variable = op.inputs[0].op.name
            found.append(Update(op, row, variable, inputs, kind.startswith("Sparse")))
    found += _scattered(writes, found)
    variables = [update.variable for update in found]
    trained = {name for name, weight in weights.items() if weight.trainable}
    others = [op for op in writes if op not in {update.op for update in found}]
    if by_hand := [op for op in others if trained & {t.op.name for t in graph_ops.written(op)}]:
        slots = {name.rsplit("/", 1)[-1] for name in weights}
        known = "one of Keras, or with a subclass that does the same."
        if {"adam_m", "adam_v"} <= slots:
            known = (
                "keras.optimizers.AdamW, and exclude_from_weight_decay. It corrects the bias of "
                "its moments, as BERT's does not: their first thousand steps differ."
            )
        raise UnlikeKerasError(
            f"{place(by_hand[0])} updates {by_hand[0].inputs[0].op.name} by operations in Python. "
            f"Compile the model with {known}"
        )
    if not found:
        raise UnlikeKerasError("nothing in train_op updates a trainable variable.")
    if len(variables) > len(set(variables)):
        raise UnlikeKerasError("it updates a variable several times in a step. Write the loop.")
    return found


def _scattered(writes: Sequence[tf.Operation], dense: list[Update]) -> list[Update]:
    """The updates of sparse gradients that Adam and gradient descent compute by other operations.

    Both do to all rows what they would do with a dense gradient.
    """
    found = []
    like = next((update for update in dense if update.row is ADAM), None)
    for op in writes:
        name = op.inputs[0].op.name
        if op.type == "ResourceScatterAdd" and f"/update_{name}/" in f"/{op.name}":
            rate = op.inputs[2].op  # -gradient * rate
            if rate.type == "Mul" and rate.inputs[0].op.type == "Neg":
                inputs = {"alpha": rate.inputs[1], "grad": rate.inputs[0].op.inputs[0]}
                found.append(Update(op, _ROWS["GradientDescent"], name, inputs, True))
        divided = _copied(op.inputs[1]).op if op.type == "AssignSubVariableOp" else op
        if like is None or divided.type != "RealDiv" or f"/update_{name}/" not in f"/{op.name}":
            continue
        scope = op.name.rpartition("/")[0] + "/"
        slots = [w.inputs[0] for w in writes if w.name.startswith(scope) and w is not op]
        first, second = list(dict.fromkeys(slot.op.outputs[0] for slot in slots))[:2]
        inputs = {**like.inputs, "m": first, "v": second}
        found.append(Update(op, ADAM, name, inputs, True))
    return found


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


def clipping(updates: list[Update]) -> dict[str, Any]:
    """The argument that clips gradients as all updates do; raises where they differ."""
    first, *others = (_clip_of(update.gradient) for update in updates)
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


def place(op: tf.Operation) -> str:
    return str(sources.of_operation(op) or op.name)
