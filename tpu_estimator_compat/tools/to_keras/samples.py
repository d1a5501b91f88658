"""What the original gives on data: outputs, and of a script, the losses and their gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_def, graph_ops
from tpu_estimator_compat.engine.refs import resource_graph
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.to_keras.graph import CONSTANT, Program, Value, in_order
from tpu_estimator_compat.tools.to_keras.saved_model import opened
from tpu_estimator_compat.tools.to_keras.script import Mode, Modes, session_of
from tpu_estimator_compat.tools.to_keras.training.steps import Step

_BATCH, _SMALL = 4, 3
_NEAR = 2  # points
_SIZE, _IMAGE = 8, 64  # of dimensions that the signature leaves open
_SAME_IDS = frozenset(
    {"Cast", "ConcatV2", "ExpandDims", "Maximum", "Minimum", "Pack", "Reshape", "Squeeze"}
) | {"StridedSlice", "Transpose", "Unique", "Where", "GatherNd"}
"""Operations whose result has the ids of their input."""
_KEPT = 0.999  # drawn by no uniform distribution that decides what dropout drops
_UNIFORM = frozenset({"RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2"})

Loss = tuple[float, dict[str, np.ndarray]]


@dataclasses.dataclass
class Samples:
    """Batches and what the original makes of them.

    Attributes:
      features: of each batch, arrays by name; of the first, `labels` as input_fn gives them.
      outputs: of each batch, arrays by name.
      metrics: by name, of the first batch.
      points: values of trainable variables, the model's own and further ones, see `_points`.
      losses: by whether it is training, at each point the first batch's loss, and its gradients by
        variable.
      variables: the names of all variables of the source's model.
    """

    features: list[dict[str, np.ndarray]]
    outputs: list[dict[str, np.ndarray]]
    variables: list[str]
    labels: Any = None
    metrics: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    points: list[dict[str, np.ndarray]] = dataclasses.field(default_factory=list)
    losses: dict[bool, list[Loss]] = dataclasses.field(default_factory=dict)


def of_signature(
    path: str, signature: str | None, tags: Sequence[str], program: Program
) -> Samples:
    """Of a SavedModel, on data drawn for the signature, whose program is `program`.

    Raises ValueError where no data can be drawn on which the signature runs.
    """
    with opened(path, signature, tags) as (session, inputs, outputs, _):
        features = drawn(program)
        try:
            found = session.run(outputs, {inputs[k]: v for k, v in features.items()})
        except tf.errors.OpError:
            kinds = {k: v.dtype.kind for k, v in features.items()}
            features = {k: v if kinds[k] == "f" else np.ones_like(v) for k, v in features.items()}
            found = session.run(outputs, {inputs[k]: v for k, v in features.items()})
        batches, results = [features], [found]
        if all(value.shape and value.shape[0] is None for value in program.inputs.values()):
            batches.append({name: array[:_SMALL] for name, array in features.items()})
            results.append(session.run(outputs, {inputs[k]: v for k, v in batches[1].items()}))
        handles = list(filter(graph_ops.is_variable_handle, session.graph.get_operations()))
    return Samples(batches, results, [op.name for op in handles])


def drawn(program: Program) -> dict[str, np.ndarray]:
    """Data for a program: ids within the tables, lengths within the sequences, normal floats."""
    rng = np.random.RandomState(0)
    found: dict[str, np.ndarray] = {}
    shapes = {name: _shape(name, value) for name, value in program.inputs.items()}
    length = min((s[1] for s in shapes.values() if len(s) > 1), default=1)
    rows = _rows(program)
    constants = [n.attrs["value"] for n in program.nodes() if n.kind == CONSTANT]
    words = [word for array in constants if array.dtype.kind in "SO" for word in array.ravel()]
    for name, value in program.inputs.items():
        shape = shapes[name]
        if value.dtype.startswith(("float", "bfloat", "half")):
            array: Any = rng.normal(size=shape)
        elif value.dtype == "string":
            array = rng.choice([*words[:1000], b"another"], shape)
        elif value.dtype in ("variant", "resource"):
            raise ValueError(f"No data can be drawn for the input {name!r} of {value.dtype}.")
        elif value in rows:
            array = rng.randint(0, rows[value], shape)
        elif len(shape) == 1 and length > 1:
            array = rng.randint(1, length + 1, shape)
        else:
            array = rng.randint(0, 2, shape)
        found[name] = np.asarray(array, tf.as_dtype(value.dtype).as_numpy_dtype)
    return found


def _shape(name: str, value: Value) -> tuple[int, ...]:
    if value.shape is None:
        raise ValueError(f"The input {name!r} has no static rank, so no data can be drawn for it.")
    free = _IMAGE if len(value.shape) > 3 else _SIZE
    sizes = [free if size is None else size for size in value.shape]
    return tuple([_BATCH if value.shape[0] is None else sizes[0], *sizes[1:]] if sizes else [])


def _rows(program: Program) -> dict[Value, int]:
    """By input, how many rows the smallest table has that it has ids of."""
    users = program.users()
    found: dict[Value, int] = {}

    def with_same_ids(value: Value) -> list[Value]:
        nodes = [node for node in users.get(value, ()) if node.kind in _SAME_IDS]
        return [each for node in nodes for each in node.outputs]

    for source in program.inputs.values():
        for value in in_order([source], with_same_ids):
            for node in users.get(value, ()):
                size = None
                if node.kind == "GatherV2" and value is node.inputs[1] and node.inputs[0].shape:
                    size = node.inputs[0].shape[0]
                elif node.kind == "OneHot" and node.inputs[1].constant is not None:
                    size = int(node.inputs[1].constant)
                if size is not None:
                    found[source] = min(size, found.get(source, size))
    return found


def of_modes(modes: Modes, step: Step) -> Samples:
    """Of a model_fn, on the script's first batch."""
    order = (ModeKeys.PREDICT, ModeKeys.EVAL, ModeKeys.TRAIN)
    predicting = next(m for m in map(modes.modes.get, order) if m is not None and m.predictions)
    with predicting.captured.in_graph():
        outputs = _session(predicting, modes).run(predicting.predictions, predicting.batch)
    points = _points(modes)
    evaluation = modes.modes.get(ModeKeys.EVAL)
    measured = _metrics(evaluation, modes) if evaluation is not None else {}
    found = Samples([modes.features], [outputs], _names(modes), modes.labels, measured, points)
    for mode in modes.modes.keys() - {ModeKeys.PREDICT}:
        if losses := _losses(modes.modes[mode], modes, points, step):
            found.losses[mode == ModeKeys.TRAIN] = losses
    return found


def _metrics(mode: Mode, modes: Modes) -> dict[str, np.ndarray]:
    with mode.captured.in_graph():
        pairs = {k: v for k, v in mode.captured.functions.metrics.items() if isinstance(v, tuple)}
        session = _session(mode, modes)
    session.run([update for _, update in pairs.values()], mode.batch)
    values = {name: value for name, (value, _) in pairs.items() if isinstance(value, tf.Tensor)}
    found: dict[str, np.ndarray] = session.run(values)
    return {name: np.asarray(value) for name, value in found.items()}


def _points(modes: Modes) -> list[dict[str, np.ndarray]]:
    """The values of all trainable variables, and further ones near them.

    Where rounding is all that is between a value and a kink, such as ReLU's, both models are right
    with gradients that differ. At another point it is another value's turn, if any.
    """
    random = np.random.RandomState(0)
    own = {n: w.value for n, w in modes.weights.items() if w.trainable and w.value is not None}

    def near(array: np.ndarray) -> np.ndarray:
        size = 0.05 * (np.sqrt(np.mean(np.square(array))) or 1.0)
        return (array + size * random.normal(size=array.shape)).astype(array.dtype)

    return [own, *({name: near(array) for name, array in own.items()} for _ in range(_NEAR))]


def _names(modes: Modes) -> list[str]:
    """The variables of the model: not those of the optimizer and of metrics."""
    found: set[str] = set()
    for mode, each in modes.modes.items():
        key = "trainable_variables" if mode == ModeKeys.TRAIN else "variables"
        found |= {v.op.name for v in each.captured.graph.get_collection(key)}
    return [*found]


def _losses(
    mode: Mode, modes: Modes, points: list[dict[str, np.ndarray]], step: Step
) -> list[Loss]:
    """Of what is minimized, in training, and of the variables that the optimizer changes.

    Empty where the loss is left to chance by more than dropout, which keeps everything here.
    """
    graph, trains = mode.captured.graph, mode is modes.modes[ModeKeys.TRAIN]
    loss = step.loss if trains else mode.captured.spec.loss
    changed = {update.variable for update in step.updates}
    if loss is None:
        return []
    with mode.captured.in_graph(), resource_graph.apart(graph):
        trainable = graph.get_collection("trainable_variables")
        variables = {v.op.name: v for v in trainable if not changed or v.op.name in changed}
        gradients = tf.gradients(loss, list(variables.values()))
        wanted = {
            name: tf.convert_to_tensor(tf.zeros_like(v) if gradient is None else gradient)
            for (name, v), gradient in zip(variables.items(), gradients, strict=True)
        }
    needed = graph_ops.in_creation_order(graph_ops.ancestors([loss.op], ()))
    chance = {n.op for nodes in _nodes(graph_def.subgraph_def(graph, needed)) for n in nodes}
    if any("Random" in kind or "Multinomial" in kind for kind in chance - _UNIFORM):
        return []
    session = _session(mode, modes, _keeping(graph))
    names = tf.nest.map_structure(lambda tensor: tensor.name, (loss, wanted))
    found = []
    for point in points:
        _assign(session, variables, point)
        value, arrays = session.run(names, mode.batch)
        found.append((float(value), arrays))
    return found


def _nodes(definition: tf.compat.v1.GraphDef) -> list[Any]:
    """The nodes of a graph, and those of each of its functions."""
    return [definition.node, *(function.node_def for function in definition.library.function)]


def _keeping(graph: tf.Graph) -> tf.Graph:
    """A copy in which dropout keeps everything, in the bodies of loops too."""
    definition = graph.as_graph_def()
    for nodes in _nodes(definition):
        for node in [node for node in nodes if node.op in _UNIFORM]:
            kept = nodes.add(name=f"{node.name}/kept", op="Const")
            kept.attr["dtype"].CopyFrom(node.attr["dtype"])
            value = tf.make_tensor_proto(_KEPT, node.attr["dtype"].type)
            kept.attr["value"].tensor.CopyFrom(value)
            output = "" if nodes is definition.node else ":output:0"
            filled = nodes.add(name=node.name, op="Fill", input=[node.input[0], kept.name + output])
            filled.attr["T"].CopyFrom(node.attr["dtype"])
            index = "T" if node.op == "RandomUniform" else "Tshape"
            filled.attr["index_type"].CopyFrom(node.attr[index])
            nodes.remove(node)
    copy = tf.Graph()
    with copy.as_default():
        tf.import_graph_def(definition, name="")
    return copy


def _session(mode: Mode, modes: Modes, graph: tf.Graph | None = None) -> tf.compat.v1.Session:
    """A new session with the weights that all modes have; of the mode's graph, or of a copy."""
    session = session_of(graph or mode.captured.graph)
    session.run(mode.captured.functions.scaffold.local_init_op.name)
    variables = {v.op.name: v for v in mode.captured.graph.get_collection("variables")}
    _assign(session, variables, {name: weight.value for name, weight in modes.weights.items()})
    return session


def _assign(session: tf.compat.v1.Session, variables: dict[str, Any], values: Any) -> None:
    for name in variables.keys() & values.keys():  # others are of the input, which is fed
        initializer = variables[name].initializer
        session.run(initializer.name, {initializer.inputs[1].name: values[name]})
