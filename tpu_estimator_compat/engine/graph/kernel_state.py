"""Finds kernels of a GraphDef that keep state between calls."""

from __future__ import annotations

import functools
from collections.abc import Callable

from tensorflow.core.framework import types_pb2

from tpu_estimator_compat.engine.graph.graph_def import GraphDef, NodeDef
from tpu_estimator_compat.tf_internals import op_def_registry

_WITHOUT_STATE = frozenset(
    {"Assert", "Print", "PrintV2", "Timestamp"}
    | {"Case", "If", "StatefulPartitionedCall", "While"}  # nodes in their functions count
    | {"Restore", "RestoreSlice", "RestoreV2", "Save", "SaveSlices", "SaveV2", "MergeV2Checkpoints"}
    | {"MatchingFiles", "ReadFile", "WriteFile"}
)
"""Types of ops with effects, or with changing values, but without state of their own."""


def keeps_state(graph_def: GraphDef, but: Callable[[NodeDef], bool] = lambda node: False) -> bool:
    """Whether a kernel of `graph_def` may have state outside of resources.

    Random ops without seeds do not count: their streams may begin anywhere. Nor do nodes, outside
    of functions, for which `but` returns True.
    """
    nodes = [node for node in graph_def.node if not but(node)]
    nodes += [node for function in graph_def.library.function for node in function.node_def]
    return any(map(_keeps_state, nodes))


def _keeps_state(node: NodeDef) -> bool:
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
