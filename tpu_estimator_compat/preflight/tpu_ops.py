"""Ops that exist only on a TPU, in the words of those that a CPU's XLA can lower.

A sum over replicas becomes XLA's all-reduce. For the other exchanges there is no such op: they
become custom calls by names that the compiler's worker knows and turns into StableHLO.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.preflight.sources import Sources
from tpu_estimator_compat.program import graph_def
from tpu_estimator_compat.program.graph_def import NodeDef, Rewrites

EXCHANGES = frozenset({graph_def.COLLECTIVE, "CollectivePermute", "AllToAll"})
"""Ops by which replicas exchange values, and that can be lowered."""

TPU_ONLY = frozenset(
    {
        "InfeedDequeue",
        "InfeedDequeueTuple",
        "OutfeedEnqueue",
        "OutfeedEnqueueTuple",
        "RecvTPUEmbeddingActivations",
        "SendTPUEmbeddingGradients",
        "TPUEmbeddingActivations",
        "TPUCompilationResult",
        "TPUReplicateMetadata",
        "XlaRecvTPUEmbeddingActivations",
        "XlaSendTPUEmbeddingGradients",
    }
)
"""Ops that a TPU has, and that nothing here can lower."""


def rewrites(graph: tf.Graph) -> Rewrites:
    """What `graph_def.subgraph_def` is to make of the exchanges in `graph`."""
    sources = Sources(graph)
    return {
        graph_def.COLLECTIVE: _all_reduce,
        "CollectivePermute": functools.partial(_permute, sources),
        "AllToAll": functools.partial(_all_to_all, sources),
    }


def _all_reduce(node: NodeDef) -> None:
    node.op = "XlaAllReduce"  # takes the same two inputs
    node.attr["reduce_op"].s = b"Add"
    node.attr["mode"].s = b"CrossReplica"


def _permute(sources: Sources, node: NodeDef) -> None:
    _custom_call(sources, node, "collective_permute", "source_target_pairs")


def _all_to_all(sources: Sources, node: NodeDef) -> None:
    names = ("concat_dimension", "split_dimension", "split_count")
    given = {name: node.attr[name].i for name in names}
    _custom_call(sources, node, "all_to_all", "group_assignment", **given)


def _custom_call(sources: Sources, node: NodeDef, what: str, pairs: str, **given: Any) -> None:
    """Turns an exchange of input 0, along the constant in input 1, into a call by name."""
    op = sources.find(node.name)
    constant = None if op is None else tf.get_static_value(op.inputs[1])
    if op is None or constant is None:
        return  # stays as it is, and XLA says that it does not know it
    [result] = op.outputs
    config = {pairs: np.asarray(constant).tolist(), **given}
    node.op = "XlaCustomCallV2"
    graph_def.set_inputs(node, [node.input[0], *(i for i in node.input if i.startswith("^"))])
    node.attr.clear()
    node.attr["call_target_name"].s = f"tfpreflight.{what}".encode()
    node.attr["backend_config"].s = json.dumps(config).encode()
    node.attr["has_side_effect"].b = False
    node.attr["operand_dtypes"].list.type.append(op.inputs[0].dtype.as_datatype_enum)
    node.attr["result_dtypes"].list.type.append(result.dtype.as_datatype_enum)
    node.attr["result_shapes"].list.shape.append(result.shape.as_proto())
