"""Makes ops that wait for a `tf.cond` wait for the reads of variables in its branches.

In a TF1 graph, the function of a branch need not run its reads. An update that waits for a
`tf.cond` because that reads the variable would not wait for the read, and a summary might show the
variable before or after the step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.tf_internals import cond_v2


@contextlib.contextmanager
def awaited() -> Iterator[None]:
    """Within, an op that waits for a `tf.cond` or `tf.switch_case` waits for its reads."""
    one, several = cond_v2.cond_v2, cond_v2.indexed_case

    def cond(pred: Any, true_fn: Any, false_fn: Any, *args: Any, **kwargs: Any) -> Any:
        return one(pred, _waiting(true_fn), _waiting(false_fn), *args, **kwargs)

    def case(index: Any, branch_fns: Any, *args: Any, **kwargs: Any) -> Any:
        return several(index, [_waiting(branch) for branch in branch_fns], *args, **kwargs)

    cond_v2.cond_v2, cond_v2.indexed_case = cond, case
    try:
        yield
    finally:
        cond_v2.cond_v2, cond_v2.indexed_case = one, several


def _waiting(branch: Callable[[], Any]) -> Callable[[], Any]:
    """A branch whose function runs the reads of variables that its results depend on."""

    def call() -> Any:
        result = branch()
        graph = tf.compat.v1.get_default_graph()
        if graph._add_control_dependencies:  # in a tf.function, which does the same for all ops
            return result
        made = [x for x in tf.nest.flatten(result, expand_composites=True) if tf.is_tensor(x)]
        targets = [tensor.op for tensor in made if tensor.graph is graph]
        graph.control_outputs.extend(
            op
            for op in graph_ops.in_creation_order(graph_ops.ancestors(targets, ()))
            if op.op_def.is_stateful
            and any(t.dtype == tf.resource for t in op.inputs)
            # Twice within `awaited` where a training evaluates.
            and op not in graph.control_outputs
        )
        return result

    return call
