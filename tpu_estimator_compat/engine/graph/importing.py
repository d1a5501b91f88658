"""Imports a GraphDef into the function under construction, and keeps the order of effects."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_def


@dataclasses.dataclass(frozen=True)
class LateControlInputs:
    """Control dependencies that are added after the import.

    In the definition they would change the order in which TensorFlow imports operations, which is
    the order in which a function runs effects.

    Attributes:
      late: names of the operations that wait.
      inside: names of operations of the definition for which they wait.
      given: tensors of the captured graph, given from outside, for which they wait.
    """

    late: Sequence[str] = ()
    inside: Sequence[str] = ()
    given: Sequence[tf.Tensor] = ()


def imported(
    definition: graph_def.GraphDef,
    inputs: Mapping[str, tf.Tensor],
    elements: Sequence[str],
    after: Sequence[tf.Operation] = (),
    wait: LateControlInputs | None = None,
    given: Sequence[tf.Tensor] = (),
) -> list[Any]:
    """Imports a definition; returns the tensors and operations that `elements` names.

    All imported operations run after `after`; `given` has the values of `wait.given`.
    """
    wait = wait or LateControlInputs()
    under_construction = tf.compat.v1.get_default_graph()
    already = len(under_construction.get_operations()) if after else 0
    # tf.distribute's scope of another replica: without it names would get numbers, and an error
    # would not say which operation failed.
    scope = under_construction.get_name_scope().rpartition("/")[2]
    with _without_control_inputs(under_construction):
        found = tf.graph_util.import_graph_def(
            definition,
            input_map=inputs,
            return_elements=[*elements, *wait.late, *wait.inside],
            name=f"{scope}/" if scope.startswith("replica_") else "",
        )
    if after:
        # tf.control_dependencies fails for imported ops: TensorFlow compares the operations `after`
        # with input tensors.
        for op in under_construction.get_operations()[already:]:
            op._add_control_inputs(after)
    late = found[len(elements) : len(elements) + len(wait.late)]
    inside = found[len(elements) + len(wait.late) :]
    outside = [under_construction.capture(tensor).op for tensor in given]
    for op in late:
        op._add_control_inputs([*inside, *outside])
    return list(found[: len(elements)])


@contextlib.contextmanager
def _without_control_inputs(graph: tf.Graph) -> Iterator[None]:
    """Leaves `tf.control_dependencies`, in which TensorFlow cannot import ops.

    TPU steps are built in one; `tf.control_dependencies(None)` would also leave the TPU context.
    """
    stack, graph._control_dependencies_stack = graph._control_dependencies_stack, []
    try:
        yield
    finally:
        graph._control_dependencies_stack = stack


def must_run(targets: Sequence[tf.Operation]) -> None:
    """Makes the function under construction run `targets`, even if no output depends on them.

    A function runs its stateful ops. `tf.cond` and `tf.while_loop` return stateless copies of their
    results; and functions of a TF1 graph run only the ops that outputs depend on.
    """
    stateless = [op for op in targets if not op.op_def.is_stateful]
    # None in a dataset's function, which runs the ops that its results depend on.
    manager = tf.compat.v1.get_default_graph().experimental_acd_manager
    if stateless and manager is not None:
        with tf.control_dependencies(stateless):
            manager.run_independently(tf.no_op())
