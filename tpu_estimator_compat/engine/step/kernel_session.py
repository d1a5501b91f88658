"""Kernels of seeded random ops that several functions share, in a TF1 session.

TensorFlow has ops that draw from a variable for the most common distributions alone; see
`random_streams.py`. For others, such as `Multinomial`, `RandomShuffle` and candidate samplers, the
state is in the kernel. Functions never share a kernel, but all calls of a TF1 session do. So a
function calls the session, as a Python function, for such an op.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from tpu_estimator_compat.engine.graph.graph_def import NodeDef, set_inputs
from tpu_estimator_compat.tf_internals import op_def_registry, script_ops

_NOT_COPIED = frozenset({tf.resource.as_datatype_enum, tf.variant.as_datatype_enum})


class KernelSession:
    """One kernel per key; its calls run on the CPU, in the caller's thread.

    In the caller's thread, since a thread of TensorFlow's pool calls it: other threads of the pool
    may be busy with such calls, which would all wait for a free one.
    """

    def __init__(self) -> None:
        self._graph = tf.Graph()
        # TensorFlow's registry of Python functions has weak references.
        self._calls: dict[Hashable, Callable[..., Any]] = {}

    def call_kernel(self, node: NodeDef, key: Hashable) -> None:
        """Rewrites a node, one that `may_call` accepts, to call the kernel of this key."""
        inputs, outputs = _dtypes(node)
        if key not in self._calls:
            self._calls[key] = self._callable(node, inputs, len(outputs))
        token = script_ops._py_funcs.insert(self._calls[key])
        node.op, node.device = "PyFunc", ""
        node.attr.clear()
        node.attr["token"].s = token.encode()
        node.attr["Tin"].list.type.extend(inputs)
        node.attr["Tout"].list.type.extend(outputs)

    def _callable(self, node: NodeDef, inputs: list[int], outputs: int) -> Callable[..., Any]:
        """A function of arrays that runs a copy of the node."""
        name = f"kernel_{len(self._calls)}"
        kernel = tf.compat.v1.NodeDef(name=name, op=node.op)
        for attribute, value in node.attr.items():
            if not attribute.startswith("_"):  # such as the op that it is colocated with
                kernel.attr[attribute].CopyFrom(value)
        with self._graph.as_default():
            feeds = {
                f"input_{i}:0": tf.compat.v1.placeholder(dtype, name=f"{name}_input_{i}")
                for i, dtype in enumerate(map(tf.as_dtype, inputs))
            }
            set_inputs(kernel, list(feeds))
            tf.graph_util.import_graph_def(
                tf.compat.v1.GraphDef(node=[kernel]), input_map=feeds, name=""
            )
        options = config_pb2.CallableOptions(
            feed=[tensor.name for tensor in feeds.values()],
            fetch=[f"{name}:{i}" for i in range(outputs)],
        )
        # `make_callable` takes twice as long in each call.
        call: Callable[..., Any] = self._session._make_callable_from_options(options)
        return call

    @functools.cached_property
    def _session(self) -> tf.compat.v1.Session:
        config = tf.compat.v1.ConfigProto(
            inter_op_parallelism_threads=-1,  # the caller's thread
            device_count={"GPU": 0},
        )
        return tf.compat.v1.Session(graph=self._graph, config=config)


def may_call(node: NodeDef) -> bool:
    """Whether a node is a random op with a seed, whose inputs and outputs can be copied."""
    if "seed2" not in node.attr or not (node.attr["seed"].i or node.attr["seed2"].i):
        return False
    definition = op_def_registry.get(node.op)
    if definition is None or not definition.is_stateful:
        return False
    arguments = [*definition.input_arg, *definition.output_arg]
    if any(each.is_ref or each.number_attr or each.type_list_attr for each in arguments):
        return False
    inputs, outputs = _dtypes(node)
    return _NOT_COPIED.isdisjoint([*inputs, *outputs])


def _dtypes(node: NodeDef) -> tuple[list[int], list[int]]:
    """TensorFlow's numbers of the dtypes of a node's inputs and outputs."""
    definition = op_def_registry.get(node.op)
    inputs, outputs = (
        [each.type or node.attr[each.type_attr].type for each in arguments]
        for arguments in (definition.input_arg, definition.output_arg)
    )
    return inputs, outputs
