"""Stages as functions that all replicas of a machine call.

Built into the step once for each of eight replicas, a stage takes TensorFlow eight times as long to
trace, to optimise and to make kernels for. TensorFlow instantiates a function once per device, so
replicas that share a device share one function.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import tensorflow as tf
from tensorflow.core.framework import types_pb2

from tpu_estimator_compat.engine.functions import functions
from tpu_estimator_compat.engine.graph import graph_def
from tpu_estimator_compat.tf_internals import handle_data_util, op_def_registry

FEWEST_OPS = 500
"""Stages with fewer ops are built in for each replica: a function call would cost more."""


class StateRewrite(Protocol):
    """Makes nodes whose kernels keep state, such as random ops, take the state as an input."""

    def applies_to(self, node: graph_def.NodeDef) -> bool:
        """Whether a node, not one in a function, takes its state as an input."""

    def apply(
        self, graph_def: graph_def.GraphDef
    ) -> tuple[graph_def.GraphDef, Mapping[str, tf.Tensor]]:
        """The graph to import in place of `graph_def`, and the values of its additional inputs."""


def is_shared(definition: graph_def.GraphDef, state_rewrite: StateRewrite | None) -> bool:
    """Whether a stage is the same for all replicas, and large enough for a function."""
    if len(definition.node) < FEWEST_OPS:
        return False
    return not keeps_state(definition, state_rewrite)


class StageFunction:
    """A function that computes a stage.

    Args:
      definition: the stage, with its library.
      inputs: the first caller's tensors, by their names in the definition.
      outputs: names of tensors in the definition.
      wanted: names of operations in the definition that have to run.
    """

    def __init__(
        self,
        definition: graph_def.GraphDef,
        inputs: Mapping[str, tf.Tensor],
        outputs: Sequence[str],
        wanted: Collection[str],
    ):
        self._definition, self._outputs, self._wanted = definition, outputs, wanted
        self._inputs = inputs
        specs = [tf.TensorSpec(t.shape, t.dtype) for t in inputs.values()]
        # An inlined function would be a part of every replica again.
        made: Any = functions.function(self._build, experimental_attributes={"_noinline": True})
        self._function = made._get_concrete_function_garbage_collected(*specs)
        del self._definition, self._inputs

    def _build(self, *placeholders: tf.Tensor) -> list[tf.Tensor]:
        for tensor, placeholder in zip(self._inputs.values(), placeholders, strict=True):
            handle_data_util.copy_handle_data(tensor, placeholder)
        returned = tf.graph_util.import_graph_def(
            self._definition,
            input_map=dict(zip(self._inputs, placeholders, strict=True)),
            return_elements=[*self._outputs, *self._wanted],
            name="",
        )
        ran = returned[len(self._outputs) :]
        with tf.control_dependencies(ran):
            return [*returned[: len(self._outputs)], tf.constant(True)]

    def __call__(self, inputs: Iterable[tf.Tensor]) -> Sequence[tf.Tensor]:
        """Builds a call; returns the outputs, and a tensor that waits for the wanted operations."""
        return self._function.inference_fn.call_flat(*inputs)


_WITHOUT_STATE = frozenset(
    {"Assert", "Print", "PrintV2", "Timestamp"}
    | {"Case", "If", "StatefulPartitionedCall", "While"}  # nodes in their functions count
    | {"Restore", "RestoreSlice", "RestoreV2", "Save", "SaveSlices", "SaveV2", "MergeV2Checkpoints"}
    | {"MatchingFiles", "ReadFile", "WriteFile"}
)
"""Types of ops with effects, or with changing values, but without state of their own."""


def keeps_state(definition: graph_def.GraphDef, state_rewrite: StateRewrite | None) -> bool:
    """Whether a kernel of `definition`, rewritten, may have state outside of resources.

    Random ops without seeds do not count: their streams may begin anywhere.
    """
    nodes = list(definition.node)
    if state_rewrite is not None:
        nodes = [node for node in nodes if not state_rewrite.applies_to(node)]
    nodes += [node for function in definition.library.function for node in function.node_def]
    return any(map(_keeps_state, nodes))


def _keeps_state(node: graph_def.NodeDef) -> bool:
    if "token" in node.attr:  # a Python function, registered by the graph it was made in
        return True
    if not _is_stateful(node.op) or node.op in _WITHOUT_STATE:
        return False
    if "seed2" in node.attr:
        return bool(node.attr["seed"].i or node.attr["seed2"].i)
    return True


@functools.lru_cache(maxsize=1024)
def _is_stateful(kind: str) -> bool:
    """Whether ops of a type have state outside of their resource inputs."""
    definition = op_def_registry.get(kind)
    if definition is None:  # a call of a function, whose nodes count
        return False
    given = any(argument.type == types_pb2.DT_RESOURCE for argument in definition.input_arg)
    return definition.is_stateful and not given
