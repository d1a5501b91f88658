"""Rewrites collectives to ops that XLA on a CPU can lower.

A sum over replicas becomes XLA's all-reduce. Other exchanges have no such op: they become custom
calls, which `jax/module.py` turns into the StableHLO ops that the calls name.
"""

from __future__ import annotations

import functools
import json

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_def
from tpu_estimator_compat.engine.graph.graph_def import NodeDef, Rewrites
from tpu_estimator_compat.engine.graph.sources import Sources
from tpu_estimator_compat.engine.jax.lowering.step_module import PREFIX
from tpu_estimator_compat.engine.step import collectives
from tpu_estimator_compat.engine.step.collectives import StableHloOp, XlaOp

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
"""Ops of TPUs, which the public TensorFlow cannot lower."""


def rewrites(graph: tf.Graph, replicas: int) -> Rewrites:
    """The rewrites of the collectives in `graph`, for `graph_def.subgraph_def`.

    A single replica has nothing to exchange; where several devices share it, XLA's partitioner
    would refuse an exchange with itself.
    """
    sources = Sources(graph)
    lowered = {
        row.op_type: functools.partial(_lower, sources, row.lowering) for row in collectives.TABLE
    }
    return {**lowered, **collectives.ALONE} if replicas == 1 else lowered


def _lower(sources: Sources, lowering: XlaOp | StableHloOp, node: NodeDef) -> None:
    if isinstance(lowering, StableHloOp):
        _custom_call(sources, lowering, node)
        return
    node.op = lowering.op_type
    for name, value in lowering.attributes.items():
        node.attr[name].s = value


def _custom_call(sources: Sources, lowering: StableHloOp, node: NodeDef) -> None:
    """Turns an exchange of input 0 into a custom call that names a StableHLO op and attributes."""
    op = sources.find(node.name)
    constant = None if op is None else collectives.participants(op)
    if op is None or constant is None:
        return  # XLA names the op in its error
    [result] = op.outputs
    config = {lowering.participants: np.asarray(constant).tolist()}
    config |= {name: node.attr[name].i for name in lowering.attributes}
    node.op = "XlaCustomCallV2"
    graph_def.set_inputs(node, [node.input[0], *(i for i in node.input if i.startswith("^"))])
    node.attr.clear()
    node.attr["call_target_name"].s = f"{PREFIX}{lowering.name}".encode()
    node.attr["backend_config"].s = json.dumps(config).encode()
    node.attr["has_side_effect"].b = False
    node.attr["operand_dtypes"].list.type.append(op.inputs[0].dtype.as_datatype_enum)
    node.attr["result_dtypes"].list.type.append(result.dtype.as_datatype_enum)
    node.attr["result_shapes"].list.shape.append(result.shape.as_proto())
