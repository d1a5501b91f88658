"""Draws the same random numbers on both sides.

Where the code gives no seed, TensorFlow derives one from the number of operations in the graph.
Each random operation draws from a stream of its own, which restarts with each compilation of a
step. Graphs and times of compilation differ between the sides. So this module derives the seed from
the place in the script (`seeds_by_place`), and the random numbers of a training step from that seed
and the global step (`draw_by_step`). Kernels of both sides draw equal numbers from equal seeds.
"""

from __future__ import annotations

import collections
import contextlib
import sys
import weakref
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.framework import ops, random_seed

_LIBRARIES = {
    "_tpu_estimator_compat_sides",
    "absl",
    "keras",
    "numpy",
    "tensorflow",
    "tensorflow_core",
    "tensorflow_estimator",
    "tf_keras",
    "tf_slim",
    "tpu_estimator_compat",
}
_GENERATED = "__autograph_generated_file"
_STATELESS = {
    "RandomUniform": tf.random.stateless_uniform,
    "RandomStandardNormal": tf.random.stateless_normal,
    "TruncatedNormal": tf.random.stateless_truncated_normal,
}
_REPLACED = {*_STATELESS, "Multinomial"}
_ALGORITHM = {"alg": "philox"} if hasattr(tf.random, "Algorithm") else {}
"""The only algorithm of TensorFlow 1; later versions may choose another for a device."""

_ASSIGNMENTS = {"Assign", "AssignAdd", "AssignVariableOp", "AssignAddVariableOp"}


@contextlib.contextmanager
def seeds_by_place() -> Iterator[None]:
    """Seeds random operations by their place, in graphs with a seed, unless they have their own.

    The place is the innermost function outside of libraries, and the number of random operations
    that this function has made in the graph. Other lines may be added without changing the place.
    """
    counts: Any = weakref.WeakKeyDictionary()
    before = random_seed.get_seed

    def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
        graph = ops.get_default_graph()
        if op_seed is None and not tf.executing_eagerly() and graph.seed is not None:
            function = users_function()
            count = counts.setdefault(graph, collections.Counter())
            count[function] += 1
            op_seed = zlib.crc32(repr((function, count[function])).encode()) % (2**31 - 1)
        return before(op_seed)  # type: ignore[no-any-return]

    random_seed.get_seed = get_seed
    try:
        yield
    finally:
        random_seed.get_seed = before


def users_function() -> str:
    """Name of the innermost function on the stack outside of libraries."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        standard = file.startswith("<") or file in (__file__, contextlib.__file__)
        if module not in _LIBRARIES and not standard and _GENERATED not in file:
            return str(frame.f_code.co_name)
        frame = frame.f_back
    return ""


def draw_by_step(targets: list[Any]) -> list[str]:
    """Replaces random operations of a step by stateless ones, seeded by the global step.

    It also orders reads of the global step before its update where the graph does not: without
    this, a learning rate of the original depends on a race. The graph must not have run yet.
    Returns the names of the random operations that could not be replaced.
    """
    global_step = tf.train.get_global_step()
    if global_step is None:
        return []
    needed = ancestors([getattr(target, "op", target) for target in targets])
    # Sorted, since sets have no order, and both sides' graphs must be the same.
    drawing = sorted((op for op in needed if _is_random(op)), key=lambda op: int(op._id))
    if drawing:
        step = tf.cast(tf.convert_to_tensor(global_step), tf.int32)
        for op in drawing:
            if op.type in _REPLACED:
                _replace(op, step)
    _order_reads_before_update(global_step, needed)
    return [op.name for op in drawing if op.type not in _REPLACED]


def _is_random(op: Any) -> bool:
    if "seed2" not in op.node_def.attr:
        return False
    # Datasets, such as a shuffle, draw in the order of their elements on both sides.
    return bool(op.outputs) and op.outputs[0].dtype not in (tf.variant, tf.resource)


def _replace(op: Any, step: Any) -> None:
    number = (op.get_attr("seed") ^ op.get_attr("seed2")) % (2**31 - 1)
    old = op.outputs[0]
    with tf.name_scope(None), tf.device(op.device or None):
        new = _stateless(op, tf.stack([tf.constant(number, tf.int32), step]))
    for consumer in list(old.consumers()):
        for i, given in enumerate(consumer.inputs):
            if given is old:
                consumer._update_input(i, new)


def _stateless(op: Any, seed: Any) -> Any:
    dtype, name = op.outputs[0].dtype, op.name + "_by_step"
    if op.type == "Multinomial":
        logits, samples = op.inputs
        return tf.random.stateless_categorical(logits, samples, seed, dtype, name)
    return _STATELESS[op.type](op.inputs[0], seed, dtype=dtype, name=name, **_ALGORITHM)


def _order_reads_before_update(global_step: Any, needed: set[Any]) -> None:
    handle = getattr(global_step, "handle", None)
    if handle is None:
        handle = global_step.op.outputs[0]  # a ref variable
    users = set(handle.consumers()) & needed
    reads = {op for op in users if op.type in ("ReadVariableOp", "Identity")}
    for op in (op for op in users if op.type in _ASSIGNMENTS):
        before = reads - _reached([op], _users)
        op._add_control_inputs([read for read in before if read not in op.control_inputs])


def ancestors(roots: list[Any]) -> set[Any]:
    """Operations that `roots` need, `roots` included."""
    given = [op for op in roots if op is not None]
    return _reached(given, lambda op: [*(tensor.op for tensor in op.inputs), *op.control_inputs])


def _users(op: Any) -> list[Any]:
    return [*(user for tensor in op.outputs for user in tensor.consumers()), *op._control_outputs]


def _reached(roots: list[Any], following: Callable[[Any], list[Any]]) -> set[Any]:
    found, left = set(), [*roots]
    while left:
        op = left.pop()
        if op not in found:
            found.add(op)
            left += following(op)
    return found
