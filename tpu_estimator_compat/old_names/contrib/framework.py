"""`tf.contrib.framework`: variables, arg scopes, checks; mostly those of tf_slim and TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework.ops import prepend_name_scope, strip_name_scope
from tensorflow.python.framework.smart_cond import smart_case, smart_cond, smart_constant_value
from tensorflow.python.framework.sparse_tensor import convert_to_tensor_or_sparse_tensor
from tensorflow.python.framework.tensor_spec import BoundedTensorSpec
from tensorflow.python.ops.check_ops import (
    assert_same_float_dtype,
    assert_scalar,
    is_non_decreasing,
    is_numeric_tensor,
    is_strictly_increasing,
)
from tensorflow.python.ops.confusion_matrix import remove_squeezable_dimensions
from tensorflow.python.ops.data_flow_ops import RecordInput
from tensorflow.python.ops.init_ops import (
    convolutional_delta_orthogonal,
    convolutional_orthogonal_1d,
    convolutional_orthogonal_2d,
    convolutional_orthogonal_3d,
)
from tensorflow.python.util import nest
from tensorflow.python.util.deprecation import deprecated, deprecated_arg_values, deprecated_args

from tpu_estimator_compat.old_names.contrib import slim

add_arg_scope = slim.add_arg_scope
add_model_variable = slim.add_model_variable
arg_scope = slim.arg_scope
arg_scoped_arguments = slim.arg_scoped_arguments
assert_global_step = slim.assert_global_step
assert_or_get_global_step = slim.assert_or_get_global_step
assign_from_checkpoint = slim.assign_from_checkpoint
assign_from_checkpoint_fn = slim.assign_from_checkpoint_fn
assign_from_values = slim.assign_from_values
assign_from_values_fn = slim.assign_from_values_fn
create_global_step = slim.create_global_step
current_arg_scope = slim.current_arg_scope
filter_variables = slim.filter_variables
get_global_step = slim.get_global_step
get_local_variables = slim.get_local_variables
get_model_variables = slim.get_model_variables
get_or_create_global_step = slim.get_or_create_global_step
get_trainable_variables = slim.get_trainable_variables
get_unique_variable = slim.get_unique_variable
get_variable_full_name = slim.get_variable_full_name
get_variables = slim.get_variables
get_variables_by_name = slim.get_variables_by_name
get_variables_by_suffix = slim.get_variables_by_suffix
get_variables_to_restore = slim.get_variables_to_restore
global_variable = slim.global_variable
has_arg_scope = slim.has_arg_scope
local_variable = slim.local_variable
model_variable = slim.model_variable
variable = slim.variable
VariableDeviceChooser = slim.VariableDeviceChooser

argsort = tf.argsort
init_from_checkpoint = tf.train.init_from_checkpoint
is_tensor = tf.is_tensor
list_variables = tf.train.list_variables
load_checkpoint = tf.train.load_checkpoint
load_variable = tf.train.load_variable
sort = tf.sort
TensorSpec = tf.TensorSpec


def get_name_scope() -> str:
    return tf.get_default_graph().get_name_scope()


def get_placeholders(graph: tf.Graph) -> list[tf.Tensor]:
    """The placeholders of a graph, in the order in which they were made."""
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]


def with_shape(expected_shape: Any, tensor: tf.Tensor) -> tf.Tensor:
    """`tensor` with a shape that is checked: now if it is static, else when the graph runs."""
    if isinstance(tensor, tf.SparseTensor):
        raise ValueError("SparseTensor not supported.")
    actual = tensor.shape
    dynamic = tf.is_tensor(expected_shape)
    if actual.is_fully_defined() and not dynamic:
        expected = [int(size) for size in np.asarray(expected_shape, np.int32).reshape([-1])]
        if not expected and actual.is_compatible_with([1]):
            return tf.reshape(tensor, [])
        if not actual.is_compatible_with(expected):
            raise ValueError(
                f"Invalid shape for tensor {tensor.name}, expected {expected}, got {actual}."
            )
        return tensor
    check = tf.assert_equal(
        tf.shape(tensor),
        tf.cast(expected_shape, tf.int32),
        message=f"Wrong shape for {tensor.name} [expected] [actual].",
    )
    with tf.control_dependencies([check]):
        result = tf.identity(tensor)
    if not dynamic:
        result.set_shape(expected_shape)
    return result


def with_same_shape(expected_tensor: tf.Tensor, tensor: tf.Tensor) -> tf.Tensor:
    """`tensor` with the shape of `expected_tensor`; see `with_shape`."""
    static = expected_tensor.shape
    known = static.is_fully_defined()
    return with_shape(static.as_list() if known else tf.shape(expected_tensor), tensor)


def py_func(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    output_types: Any = None,
    output_shapes: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """A Python function as an operation, with keyword arguments and nested results.

    `output_types` is a nested structure of dtypes, `output_shapes` None or one of shapes; either
    may be a function that makes it of the tensors.
    """
    if not isinstance(args, list | tuple):
        raise TypeError(f"args must be list and not {type(args)}. args: {args}")
    if not isinstance(kwargs or {}, dict):
        raise TypeError(f"kwargs must be dict and not {type(kwargs)}. args: {kwargs}")
    inputs = (tuple(args), kwargs or {})
    if callable(output_types):
        output_types = output_types(*args, **inputs[1])
    if callable(output_shapes):
        output_shapes = output_shapes(*args, **inputs[1])

    def call(*flat: Any) -> list[Any]:
        positional, named = nest.pack_sequence_as(inputs, flat)
        result = func(*positional, **named)
        nest.assert_shallow_structure(output_types, result)
        return nest.flatten(result)

    types = nest.flatten(output_types)
    outputs = tf.py_func(call, nest.flatten(inputs), types, stateful=stateful, name=name)
    if output_shapes is not None:
        shapes = nest.flatten_up_to(output_types, output_shapes)
        for output, shape in zip(outputs, shapes, strict=True):
            output.set_shape(shape)
    return nest.pack_sequence_as(output_types, outputs)


__all__ = [
    "BoundedTensorSpec",
    "RecordInput",
    "TensorSpec",
    "VariableDeviceChooser",
    "add_arg_scope",
    "add_model_variable",
    "arg_scope",
    "arg_scoped_arguments",
    "argsort",
    "assert_global_step",
    "assert_or_get_global_step",
    "assert_same_float_dtype",
    "assert_scalar",
    "assign_from_checkpoint",
    "assign_from_checkpoint_fn",
    "assign_from_values",
    "assign_from_values_fn",
    "convert_to_tensor_or_sparse_tensor",
    "convolutional_delta_orthogonal",
    "convolutional_orthogonal_1d",
    "convolutional_orthogonal_2d",
    "convolutional_orthogonal_3d",
    "create_global_step",
    "current_arg_scope",
    "deprecated",
    "deprecated_arg_values",
    "deprecated_args",
    "filter_variables",
    "get_global_step",
    "get_local_variables",
    "get_model_variables",
    "get_name_scope",
    "get_or_create_global_step",
    "get_placeholders",
    "get_trainable_variables",
    "get_unique_variable",
    "get_variable_full_name",
    "get_variables",
    "get_variables_by_name",
    "get_variables_by_suffix",
    "get_variables_to_restore",
    "global_variable",
    "has_arg_scope",
    "init_from_checkpoint",
    "is_non_decreasing",
    "is_numeric_tensor",
    "is_strictly_increasing",
    "is_tensor",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "local_variable",
    "model_variable",
    "nest",
    "prepend_name_scope",
    "py_func",
    "remove_squeezable_dimensions",
    "smart_case",
    "smart_cond",
    "smart_constant_value",
    "sort",
    "strip_name_scope",
    "variable",
    "with_same_shape",
    "with_shape",
]
