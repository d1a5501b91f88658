"""Updates that Keras makes in training by itself, such as those of moving averages.

A Keras 3 or tf_keras layer inside a model_fn assigns to its variables, and train_op does not depend
on those ops: Keras runs them anyway, and so do steps. The TF1 layers (`tf.layers`) put theirs into
UPDATE_OPS, for the user to run or not. Optimizers of Keras 3, and the new ones of tf_keras, return
no op for their updates either; those of `tf_keras.optimizers.legacy` do.
"""

from __future__ import annotations

from collections.abc import Collection

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops, keras_code

_WRITES = frozenset({"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"})


def implicit_updates(graph: tf.Graph, wanted: Collection[tf.Operation]) -> list[tf.Operation]:
    """Writes by Keras that `wanted` does not run, except initializers and UPDATE_OPS."""
    collected = graph.get_collection(tf.compat.v1.GraphKeys.UPDATE_OPS)
    keys = (tf.compat.v1.GraphKeys.GLOBAL_VARIABLES, tf.compat.v1.GraphKeys.LOCAL_VARIABLES)
    variables = [variable for key in keys for variable in graph.get_collection(key)]
    known = [op if isinstance(op, tf.Operation) else op.op for op in collected]
    known += [graph_ops.as_operation(v.initializer) for v in variables]
    writes = [op for op in graph.get_operations() if op.type in _WRITES]
    if not writes:
        return []
    spoken_for = graph_ops.ancestors([*known, *wanted], ())
    return [op for op in writes if op not in spoken_for and _by_keras(op)]


def _by_keras(op: tf.Operation) -> bool:
    # A variable's first initializer is not its `initializer` after `init_from_checkpoint`.
    if any(frame.name == "_init_from_args" for frame in op.traceback):
        return False
    return keras_code.is_by(op, keras_code.UPDATING)
