"""Host resources of a captured graph: hash tables, iterators, summary writers, queues."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable

import tensorflow as tf

from tpu_estimator_compat.engine.functions import functions
from tpu_estimator_compat.engine.graph import graph_def, graph_ops, importing

_ITERATORS = frozenset({"Iterator", "IteratorV2", "OneShotIterator"})


class Resource:
    """A resource of a captured graph, created from its op; it lives as long as this object."""

    def __init__(self, op: tf.Operation):
        self.is_iterator = op.type in _ITERATORS
        self._element_spec = _element_spec(op) if self.is_iterator else ()
        self.is_summary_writer = op.type == "SummaryWriter"
        # A resource without a shared name dies with the function whose kernel made it.
        self._keep = functions.function(functools.partial(_made, op, _definition(op)))
        self.handle = self._keep()

    def no_data(self) -> tf.data.Dataset:
        """An empty dataset with this iterator's element spec."""
        if any(spec.dtype == tf.variant for spec in self._element_spec):
            return tf.data.Dataset.range(0).map(self._blank_element)
        # Tracing a function, as above, takes as long as predicting many batches.
        rows = [tf.zeros([0, *_sizes(spec)], spec.dtype) for spec in self._element_spec]
        return tf.data.Dataset.from_tensor_slices(tuple(rows))

    def read(self, dataset: tf.data.Dataset) -> None:
        """Makes this iterator read a dataset, which frees the former one."""
        tf.raw_ops.MakeIterator(dataset=dataset._variant_tensor, iterator=self.handle)

    @tf.autograph.experimental.do_not_convert
    def _blank_element(self, _: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return tuple(map(_blank, self._element_spec))

    def flush(self) -> None:
        """Flushes a summary writer, if it is open."""
        with contextlib.suppress(tf.errors.NotFoundError):
            tf.raw_ops.FlushSummaryWriter(writer=self.handle)


def _definition(op: tf.Operation) -> graph_def.GraphDef:
    ops = graph_ops.in_creation_order(graph_ops.ancestors([op], ()))
    return graph_def.subgraph_def(op.graph, ops, replica=0, rewrites={op.type: _own(op)})


def _made(op: tf.Operation, definition: graph_def.GraphDef) -> tf.Tensor:
    """Builds a resource into the function under construction; returns its handle."""
    functions.register_functions(definition)
    [handle] = importing.imported(definition, {}, [op.outputs[0].name])
    return tf.identity(handle)


def _element_spec(iterator: tf.Operation) -> tuple[tf.TensorSpec, ...]:
    """The flat specs of an iterator's element; a composite is its parts, or one variant."""
    types, shapes = iterator.get_attr("output_types"), iterator.get_attr("output_shapes")
    return tuple(
        tf.TensorSpec(tf.TensorShape(shape), dtype)
        for shape, dtype in zip(shapes, types, strict=True)
    )


def _sizes(spec: tf.TensorSpec) -> list[int]:
    """A shape that fits the spec: unknown sizes are 1, and a tensor of unknown rank is a scalar."""
    return [size or 1 for size in spec.shape.as_list()] if spec.shape.rank else []


def _blank(spec: tf.TensorSpec) -> tf.Tensor:
    sizes = _sizes(spec)
    if spec.dtype != tf.variant:
        return tf.zeros(sizes, spec.dtype)
    nothing = tf.raw_ops.EmptyTensorList(
        element_shape=-1, max_num_elements=-1, element_dtype=tf.float32
    )
    return tf.reshape(tf.stack([nothing] * math.prod(sizes)), sizes)


def _own(op: tf.Operation) -> Callable[[graph_def.NodeDef], None]:
    """A function that makes the node of a resource op private to its graph.

    A TF1 session had its own resources. Here all graphs share one eager context, in which two
    resources of the same shared name would be one.
    """
    attributes = {attr.name for attr in op.op_def.attr}

    def rename(node: graph_def.NodeDef) -> None:
        shared = node.attr["shared_name"].s if "shared_name" in attributes else b""
        if shared and _others_share(op, shared):
            node.attr["shared_name"].s = b"%s_%d" % (shared, graph_def.serial(op.graph))
        elif "shared_name" in attributes:
            node.attr["shared_name"].s = b""  # the kernel then frees the resource
            if "use_node_name_sharing" in attributes:
                node.attr["use_node_name_sharing"].b = False

    return rename


def _others_share(op: tf.Operation, name: bytes) -> bool:
    """Whether other ops of the graph use this name; assumed of all summary writers."""
    return op.type == "SummaryWriter" or any(
        other is not op and other.type == op.type and other.get_attr("shared_name") == name
        for other in op.graph.get_operations()
    )
