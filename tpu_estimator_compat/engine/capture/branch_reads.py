"""Reads of variables within branches, as a part of what waits for their `tf.cond`.

The functions of branches in a TF1 graph say of nothing that it has to run. An update that waits for
such a `tf.cond`, because it reads the variable, did not wait for the read then, and a summary might
show the variable before or after the step.
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
    """Within, an operation that waits for a `tf.cond` or `tf.switch_case` waits for its reads."""
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
    """A branch whose function ends when what its results depend on has read its variables."""

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
            # An evaluation amid a training builds its graph within `awaited` of both.
            and op not in graph.control_outputs
        )
        return result

    return call
