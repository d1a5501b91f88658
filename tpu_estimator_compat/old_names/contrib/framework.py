"""`tf.contrib.framework`: variables, arg scopes, checks; mostly tf_slim's and TensorFlow's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import ops, smart_cond, sparse_tensor, tensor_spec
from tensorflow.python.ops import check_ops, confusion_matrix, data_flow_ops, init_ops
from tensorflow.python.util import deprecation, nest

from tpu_estimator_compat.old_names.contrib import slim, taken_over

_SAME = taken_over(
    globals(),
    {
        slim: """
            VariableDeviceChooser add_arg_scope add_model_variable arg_scope arg_scoped_arguments
            assert_global_step assert_or_get_global_step assign_from_checkpoint
            assign_from_checkpoint_fn assign_from_values assign_from_values_fn create_global_step
            current_arg_scope filter_variables get_global_step get_local_variables
            get_model_variables get_or_create_global_step get_trainable_variables
            get_unique_variable get_variable_full_name get_variables get_variables_by_name
            get_variables_by_suffix get_variables_to_restore global_variable has_arg_scope
            local_variable model_variable variable
        """,
        check_ops: """
            assert_same_float_dtype assert_scalar is_non_decreasing is_numeric_tensor
            is_strictly_increasing
        """,
        confusion_matrix: "remove_squeezable_dimensions",
        data_flow_ops: "RecordInput",
        deprecation: "deprecated deprecated_arg_values deprecated_args",
        init_ops: """
            convolutional_delta_orthogonal convolutional_orthogonal_1d convolutional_orthogonal_2d
            convolutional_orthogonal_3d
        """,
        ops: "prepend_name_scope strip_name_scope",
        smart_cond: "smart_case smart_cond smart_constant_value",
        sparse_tensor: "convert_to_tensor_or_sparse_tensor",
        tensor_spec: "BoundedTensorSpec",
        tf: "TensorSpec argsort is_tensor sort",
        tf.train: "init_from_checkpoint list_variables load_checkpoint load_variable",
    },
)


def get_name_scope() -> str:
    return tf.get_default_graph().get_name_scope()


def get_placeholders(graph: tf.Graph) -> list[tf.Tensor]:
    """The placeholders of a graph, in order of creation."""
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]


def with_shape(expected_shape: Any, tensor: tf.Tensor) -> tf.Tensor:
    """Checks a shape: at once if it is static, else in a run; if [] is expected, squeezes [1]."""
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
    """Runs a Python function as an operation, with keyword arguments and nested results.

    `output_types` is a nested structure of dtypes; `output_shapes` is None or a structure of
    shapes. Either may be a function that computes the structure from the tensors.
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
    *_SAME,
    "get_name_scope",
    "get_placeholders",
    "nest",
    "py_func",
    "with_same_shape",
    "with_shape",
]
