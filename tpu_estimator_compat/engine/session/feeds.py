"""Reads a feed_dict with the checks and error messages of TensorFlow's own session.

TensorFlow's own code cannot be called: with NumPy 2 it rounds and converts values that it refused
with NumPy 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import key
from tpu_estimator_compat.tf_internals import nest, tf_session

Feeds = Sequence[tuple[tf.Tensor, np.ndarray]]
_GRAPH_ERROR = "Graph execution error:\n\n"
_RUNTIME_NAMES = {tf.float16: "half", tf.float32: "float", tf.float64: "double"}


def read(graph: tf.Graph, feed_dict: dict[Any, Any]) -> Feeds:
    """The tensors that `feed_dict` feeds, each once, and their values.

    Raises:
      TypeError: a key is no tensor of `graph`, or a tensor's type does not hold its value.
      ValueError: a tensor may not be fed, or not with this value.
    """
    feeds = {}
    for feed, value in nest.flatten_dict_items(feed_dict).items():
        for part, given in _expanded(feed, value):
            tensor = _tensor(graph, part)
            if isinstance(given, tf.Tensor):
                raise TypeError(
                    "The value of a feed cannot be a tf.Tensor object. Acceptable feed values "
                    "include Python scalars, strings, lists, numpy ndarrays, or TensorHandles. For "
                    f"reference, the tensor object was {value!s} which was passed to the argument "
                    f"`feed_dict` with key {feed!s}."
                )
            array = _array(tensor, given)
            if not tensor.shape.is_compatible_with(array.shape):
                raise ValueError(
                    f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, "
                    f"which has shape {tensor.shape}"
                )
            if not graph.is_feedable(tensor):
                raise ValueError(f"Tensor {tensor.name} may not be fed.")
            feeds[tensor.ref()] = tensor, array
    return list(feeds.values())


def check_refs(feeds: Feeds, operations: Sequence[tf.Operation]) -> None:
    """Raises InvalidArgumentError where `operations` need a fed ref itself, not only its value."""
    fed = [tensor for tensor, _ in feeds]
    for tensor in fed:
        if not tensor.dtype._is_ref_dtype:
            continue
        needed = graph_ops.ancestors(operations, set(map(key, fed)))
        for op in (op for op in tensor.consumers() if op in needed):
            place = next(i for i, t in enumerate(op.inputs) if t is tensor)
            if op._input_types[place]._is_ref_dtype:
                number = sorted(t.name for t in fed).index(tensor.name)
                dtype = _RUNTIME_NAMES.get(tensor.dtype.base_dtype, tensor.dtype.base_dtype.name)
                message = (
                    f"Input {place} of node {op.name} was passed {dtype} from "
                    f"_arg_{tensor.op.name}_0_{number}:0 incompatible with expected {dtype}_ref."
                )
                raise tf.errors.InvalidArgumentError(None, None, _GRAPH_ERROR + message)


def _expanded(feed: Any, value: Any) -> Iterable[tuple[Any, Any]]:
    """The tensors of a key, such as those of a sparse tensor, with a value each."""
    kinds = tf_session._REGISTERED_EXPANSIONS
    return next(expand for kind, _, expand, _ in kinds if isinstance(feed, kind))(feed, value)


def _tensor(graph: tf.Graph, feed: Any) -> tf.Tensor:
    try:
        return graph.as_graph_element(feed, allow_operation=False)
    except Exception as error:
        message = f"Cannot interpret feed_dict key as Tensor: {error.args[0]}"
        raise TypeError(message) from error


def _array(tensor: tf.Tensor, value: Any) -> np.ndarray:
    dtype = tensor.dtype.as_numpy_dtype
    # A float64: NumPy 2 would first convert an int to the dtype of the other operand of `!=`.
    if isinstance(value, int) and tf_session._convert_to_numpy_obj(dtype, value) != np.float64(
        value
    ):
        raise TypeError(
            f"Type of feed value {value} with type {type(value)} is not compatible with Tensor "
            f"type {dtype}. Try explicitly setting the type of the feed tensor to a larger type "
            "(e.g. int64)."
        )
    if tensor.dtype.is_integer:
        array = np.asarray(value)
        if array.dtype.kind in "iu":  # ints of a list wrap around
            return array.astype(dtype, copy=False)
    array = np.asarray(value, dtype)
    if tensor.dtype == tf.string:
        _check_strings(array)
    return array


def _check_strings(array: np.ndarray) -> None:
    for each in array.flat:
        if not isinstance(each, (str, bytes)):
            message = f"{_GRAPH_ERROR}Unsupported object type {type(each).__name__}"
            raise tf.errors.InternalError(None, None, message)
