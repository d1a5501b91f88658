"""Makes random ops draw from a state that the caller gives: new in every step, and repeatable.

XLA's own numbers for TF1's stateful random ops depend on neither a seed nor a step. So all ops of a
step draw from one generator, a resource beside the variables, which is passed to every function
that draws. The state is Philox's, as in `tf.random.Generator`: a counter of 128 bits, low half
first, and a key of 64 bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.graph import graph_def as graph_defs
from tpu_estimator_compat.engine.graph.graph_def import GraphDef, NodeDef
from tpu_estimator_compat.engine.jax.lowering.step_module import RANDOM_STATE as NAME
from tpu_estimator_compat.engine.step import random_streams
from tpu_estimator_compat.engine.step.random_streams import ALGORITHM, FROM_STATE

SHAPE, DTYPE = (3,), tf.int64

_LOOPS = ("While", "StatelessWhile")


def _multinomial(logits: tf.Tensor, num_samples: tf.Tensor, *, output_dtype: tf.DType) -> tf.Tensor:
    """Draws the class with the largest sum of logit and Gumbel noise."""
    rows, classes = tf.unstack(tf.shape(logits))
    shape = tf.stack([rows, num_samples, classes])
    noise = -tf.math.log(-tf.math.log(tf.raw_ops.RandomUniform(shape=shape, dtype=tf.float32)))
    return tf.argmax(tf.cast(logits, tf.float32)[:, None] + noise, -1, output_dtype)


def _shuffle(value: tf.Tensor) -> tf.Tensor:
    """Sorts rows by random keys."""
    rows = tf.shape(value)[:1]
    keys = tf.raw_ops.RandomUniformInt(
        shape=rows, minval=tf.constant(0, tf.int64), maxval=tf.constant(2**62, tf.int64)
    )
    _, order = gen_xla_ops.xla_key_value_sort(keys=keys, values=tf.range(rows[0]))
    return tf.gather(value, order)


def _truncated(
    shape: tf.Tensor,
    means: tf.Tensor,
    stdevs: tf.Tensor,
    minvals: tf.Tensor,
    maxvals: tf.Tensor,
    *,
    dtype: tf.DType,
) -> tf.Tensor:
    """Draws by the inverse of the normal distribution function; parameters have a value per row."""

    def column(parameter: tf.Tensor) -> tf.Tensor:
        parameter = tf.cast(tf.reshape(parameter, [-1]), tf.float32)
        parameter = tf.broadcast_to(parameter, shape[:1])
        return tf.reshape(parameter, tf.concat([shape[:1], tf.ones_like(shape[1:])], 0))

    mean, stdev, low, high = map(column, (means, stdevs, minvals, maxvals))
    # Draws below the mean and mirrors: above it, probabilities are too close to 1 to differ.
    first, last = (low - mean) / stdev, (high - mean) / stdev
    above = first > 0
    first, last = (
        _probability_below(tf.where(above, *limits)) for limits in ((-last, first), (-first, last))
    )
    uniform = tf.raw_ops.RandomUniform(shape=shape, dtype=tf.float32)
    drawn = _quantile(first + uniform * (last - first))
    drawn = mean + stdev * tf.where(above, -drawn, drawn)
    return tf.cast(tf.clip_by_value(drawn, low, high), dtype)


def _probability_below(x: tf.Tensor) -> tf.Tensor:
    """The cumulative distribution function of the standard normal distribution."""
    return 0.5 * tf.math.erfc(-x / np.sqrt(2))


def _quantile(probability: tf.Tensor) -> tf.Tensor:
    """The inverse of `_probability_below`; also where XLA's `ndtri` gives minus infinity."""
    small = probability < 1e-3
    p = tf.where(small, tf.maximum(probability, 1e-37), 1e-3)
    x = -tf.sqrt(-2 * tf.math.log(p))
    for _ in range(4):  # Newton's steps on the logarithm, which is almost a parabola there
        below = _probability_below(x)
        density = tf.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
        x -= (tf.math.log(below) - tf.math.log(p)) * below / density
    return tf.where(small, x, tf.math.ndtri(probability))


_COMPOSED: dict[str, tuple[Callable[..., tf.Tensor], tuple[str, ...]]] = {
    "Multinomial": (_multinomial, ("output_dtype",)),
    "RandomShuffle": (_shuffle, ()),
    "ParameterizedTruncatedNormal": (_truncated, ("dtype",)),
}
"""By op type: a function that draws by ops of `FROM_STATE`, and the attributes that it takes."""

DRAWING = frozenset({*FROM_STATE, *_COMPOSED})
"""Types of the ops that draw from the state."""


class RandomState:
    """A `StateRewrite` of a `ReplicaProgram`: random ops draw from an int64 vector of 3."""

    def __init__(self, handle: tf.Tensor):
        self._handle = handle

    def applies_to(self, node: NodeDef) -> bool:
        return node.op in DRAWING

    def apply(self, graph_def: GraphDef) -> tuple[GraphDef, dict[str, tf.Tensor]]:
        """`graph_def` with all random ops, also in functions, drawing from the state; an input map.

        Returns `graph_def` itself and an empty map where nothing draws.
        """
        changed = tf.compat.v1.GraphDef()
        changed.CopyFrom(graph_def)
        if not thread(changed):
            return graph_def, {}
        return changed, {f"{NAME}:0": self._handle}


def thread(graph_def: GraphDef) -> bool:
    """Adds the state to all ops and functions that draw, in place; returns whether any does.

    The graph takes the state as an input that it does not define: `random_state:0`.
    """
    if not any(node.op in DRAWING for node in _all_nodes(graph_def)):
        return False
    _call_composed(graph_def)
    functions = {f.signature.name: f for f in graph_def.library.function}
    drawing = _drawing(graph_def)
    bodies = {
        node.attr["body"].func.name for node in _all_nodes(graph_def) if node.op in _LOOPS
    } & drawing
    for name in sorted(drawing):
        _thread_function(functions[name], drawing, returns_state=name in bodies)
    threaded = [_thread_node(node, drawing, NAME, ALGORITHM) for node in graph_def.node]
    random_streams.add_algorithm(graph_def.node.add())
    return any(threaded)


def _all_nodes(graph_def: GraphDef) -> Iterator[NodeDef]:
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def _drawing(graph_def: GraphDef) -> set[str]:
    """Names of the functions that draw, call such a function, or share a node with one."""
    functions = graph_def.library.function
    found = {f.signature.name for f in functions if any(x.op in FROM_STATE for x in f.node_def)}
    while True:
        more = {
            f.signature.name
            for f in functions
            if any(called.name in found for node in f.node_def for called in _functions_of(node))
        }
        for node in _all_nodes(graph_def):
            # Branches take the same arguments; so do a loop's body and condition.
            names = {f.name for f in _functions_of(node)}
            if names & found:
                more |= names
        if more <= found:
            return found
        found |= more


def _functions_of(node: NodeDef) -> Iterator[Any]:
    for attr in node.attr.values():
        kind = attr.WhichOneof("value")
        if kind == "func":
            yield attr.func
        elif kind == "list":
            yield from attr.list.func


def _thread_function(function: Any, drawing: set[str], *, returns_state: bool) -> None:
    argument = function.signature.input_arg.add()
    argument.name, argument.type = NAME, tf.resource.as_datatype_enum
    function.signature.is_stateful = True
    for node in list(function.node_def):
        _thread_node(node, drawing, NAME, f"{ALGORITHM}:output:0")
    random_streams.add_algorithm(function.node_def.add())
    if returns_state:
        output = function.signature.output_arg.add()
        output.name, output.type = f"{NAME}_out", tf.resource.as_datatype_enum
        function.ret[f"{NAME}_out"] = NAME
    function.signature.name += f"_{NAME}"


def _thread_node(node: NodeDef, drawing: set[str], state: str, algorithm: str) -> bool:
    """Gives a node the state if it draws; returns whether it does."""
    if node.op in FROM_STATE:
        random_streams.draw_from(node, state, algorithm)
        return True
    if not any(f.name in drawing for f in _functions_of(node)):
        return False
    controls = [name for name in node.input if name.startswith("^")]
    inputs = [name for name in node.input if not name.startswith("^")]
    graph_defs.set_inputs(node, [*inputs, state, *controls])
    for called in _functions_of(node):
        if called.name in drawing:
            called.name += f"_{NAME}"
    node.op = node.op.removeprefix("Stateless")
    if node.op == "PartitionedCall":
        node.op = "StatefulPartitionedCall"
    node.attr["T" if node.op == "While" else "Tin"].list.type.append(tf.resource.as_datatype_enum)
    if node.op == "While" and node.attr["output_shapes"].list.shape:
        node.attr["output_shapes"].list.shape.add().CopyFrom(tf.TensorShape([]).as_proto())
    return True


def _call_composed(graph_def: GraphDef) -> None:
    """Turns every op of `_COMPOSED` into a call of a function that draws by simpler ops."""
    known = {f.signature.name for f in graph_def.library.function}
    for node in list(_all_nodes(graph_def)):
        if node.op not in _COMPOSED:
            continue
        types = tuple((name, node.attr[name].type) for name in _COMPOSED[node.op][1])
        function, library = _composed(node.op, node.attr["T"].type, types)
        for called in [*library, function]:
            if called.signature.name not in known:
                known.add(called.signature.name)
                graph_def.library.function.add().CopyFrom(called)
        node.op = "StatefulPartitionedCall"
        node.attr.clear()
        node.attr["f"].func.name = function.signature.name
        node.attr["Tin"].list.type.extend(a.type for a in function.signature.input_arg)
        node.attr["Tout"].list.type.extend(a.type for a in function.signature.output_arg)


@functools.cache
def _composed(
    op_type: str, element: int, types: tuple[tuple[str, int], ...]
) -> tuple[Any, list[Any]]:
    """The function in place of an op whose `T` is `element`, and the functions that it calls."""
    call, _ = _COMPOSED[op_type]
    keywords = {name: tf.as_dtype(value) for name, value in types}
    given = tf.as_dtype(element)
    inputs = {
        "Multinomial": [tf.TensorSpec([None, None], given), tf.TensorSpec([], tf.int32)],
        "RandomShuffle": [tf.TensorSpec(None, given)],
        "ParameterizedTruncatedNormal": [
            tf.TensorSpec([None], given),
            *[tf.TensorSpec(None, keywords.get("dtype", given))] * 4,
        ],
    }[op_type]
    with eager.eager_mode():
        function: Any = tf.function(
            lambda *values: call(*values, **keywords), autograph=False
        ).get_concrete_function(*inputs)
    return function.function_def, list(function.graph.as_graph_def().library.function)
