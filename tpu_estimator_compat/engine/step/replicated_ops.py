"""Rewrites the ops around a replicated TPU computation, for devices without kernels for them.

`tpu.replicate` and `tpu.rewrite` build these ops, and so do variables and constants with a value
for each replica. A replica's program has the replica's value in their place.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_def, graph_ops
from tpu_estimator_compat.engine.graph.graph_def import NodeDef, Rewrites
from tpu_estimator_compat.engine.graph.graph_ops import Key, key

INPUT = "TPUReplicatedInput"
OUTPUT = "TPUReplicatedOutput"


def rewrites(replica: int | None) -> Rewrites:
    """The rewrites of these ops for one replica, for `graph_def.subgraph_def`.

    `replica` is its id; 0 for a sole replica, and for the host. None for devices on which XLA
    partitions a replica's tensors as the graph says.
    """
    own: Rewrites = {
        INPUT: functools.partial(_own_input, replica or 0),
        OUTPUT: functools.partial(_own_input, 0),
        "TPUReplicateMetadata": _nothing,
    }
    if replica is None:
        return own
    whole = dict.fromkeys(("TPUPartitionedInput", "XlaSharding"), functools.partial(_own_input, 0))
    # The empty `CompilationResultProto` means success.
    success = functools.partial(graph_def.make_constant, value=b"", dtype=tf.string)
    return {**own, **whole, "TPUCompilationResult": success}


def of_others(ops: Iterable[tf.Operation], replica: int) -> set[Key]:
    """Inputs of `ops` that, after `rewrites`, only the programs of other replicas take."""
    taken: set[Key] = set()
    others: set[Key] = set()
    for op in ops:
        own = replica if op.type == INPUT and len(op.inputs) > 1 else None
        for number, tensor in enumerate(op.inputs):
            (taken if own in (None, number) else others).add(key(tensor))
    return others - taken


def owned(
    ops: Collection[tf.Operation], replicas: int, *, compiled: bool, alone: bool = True
) -> set[tf.Operation]:
    """Handles of variables that belong to one of several replicas.

    Args:
      ops: the operations of the replicas' program; not those of functions that they call.
      compiled: whether one program serves all replicas.
      alone: whether all replicas are on this machine.
    """
    found: set[tf.Operation] = set()
    for op in ops:
        count = {INPUT: len(op.inputs), OUTPUT: len(op.outputs)}.get(op.type, 1)
        if count == 1:
            continue
        if op.type == OUTPUT:
            raise NotImplementedError(
                f"{op.name} hands out the values of {count} replicas, as tpu.replicate and "
                "tpu.shard do. A model_fn is itself the computation of one replica: call the "
                "function there, and add up over replicas with tf.tpu.cross_replica_sum."
            )
        _check_input(op, count, replicas, compiled)
        found |= {t.op for t in op.inputs if graph_ops.is_variable_handle(t.op)}
    if found and not alone:
        raise NotImplementedError(
            f"{min(op.name for op in found)} is a variable of one replica. On several machines the "
            "chief would save its own alone. Run all replicas on one machine."
        )
    _check_use(ops, found)
    return found


def _check_input(op: tf.Operation, count: int, replicas: int, compiled: bool) -> None:
    if count != replicas:
        raise ValueError(
            f"{op.name} has inputs for {count} replicas, and {replicas} run. Make as many inputs "
            f"as params['context'].num_replicas, or start {count} replicas: python -m "
            f"tpu_estimator_compat run --logical-cpus {count} SCRIPT."
        )
    if compiled:
        raise NotImplementedError(
            f"{op.name} gives each of {count} replicas an input of its own, which replicas on a "
            "TPU, or compiled by XLA, cannot be given here: they run one program. Run it on "
            f'logical CPUs (run --logical-cpus {count}, without runtime="jax").'
        )


def _check_use(ops: Iterable[tf.Operation], own: set[tf.Operation]) -> None:
    """Refuses ops that every replica runs, on a variable that one replica owns."""
    for op in ops if own else ():
        for t in op.inputs:
            if t.op in own and op.type != INPUT:
                raise NotImplementedError(
                    f"{op.name} of every replica uses the variable {t.op.name}, which is one "
                    "replica's own. Read such variables outside of tf.cond, tf.while_loop and "
                    "tf.function, where the context of the replica is seen."
                )


def _own_input(number: int, node: NodeDef) -> None:
    data = [name for name in node.input if not name.startswith("^")]
    waits = [name for name in node.input if name.startswith("^")]
    # The host and a sole replica take the first input; `_check_input` refuses other numbers.
    graph_def.set_inputs(node, [data[number if len(data) > 1 else 0], *waits])
    node.op = "Identity"
    kept = node.attr["T"].type
    node.attr.clear()
    node.attr["T"].type = kept


def _nothing(node: NodeDef) -> None:
    node.op = "NoOp"
    node.attr.clear()
