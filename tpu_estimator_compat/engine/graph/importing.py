"""Imports a GraphDef into the function under construction, in an order of effects."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_def


@dataclasses.dataclass(frozen=True)
class Wait:
    """Operations of a definition that wait for tensors that they are not made of.

    They are no control inputs in the definition: TensorFlow imports operations in an order that
    depends on their inputs, and a function runs effects in the order of import.

    Attributes:
      late: names of these operations.
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
    after: Sequence[tf.Operation],
    wait: Wait,
    given: Sequence[tf.Tensor],
) -> list[Any]:
    """Imports a definition.

    Args:
      definition: the graph to import.
      inputs: its inputs.
      elements: names of tensors and operations of it.
      after: operations that run before all of it.
      wait: the operations of it that wait for more.
      given: the values of `wait.given`.

    Returns:
      The elements.
    """
    under_construction = tf.compat.v1.get_default_graph()
    already = len(under_construction.get_operations()) if after else 0
    with _without_control_inputs(under_construction):
        found = tf.graph_util.import_graph_def(
            definition,
            input_map=inputs,
            return_elements=[*elements, *wait.late, *wait.inside],
            name="",
        )
    if after:
        # Not by tf.control_dependencies: for imported ops TensorFlow compares these operations
        # with input tensors, and fails.
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
    """TensorFlow cannot import ops under tf.control_dependencies, within which a TPU's steps are.

    `tf.control_dependencies(None)` would leave the TPU computation as well.
    """
    stack, graph._control_dependencies_stack = graph._control_dependencies_stack, []
    try:
        yield
    finally:
        graph._control_dependencies_stack = stack


def must_run(targets: Sequence[tf.Operation]) -> None:
    """Has the function under construction run `targets`, whether or not anyone wants its results.

    A function runs its stateful ops. The op that a `tf.cond` or a `tf.while_loop` returns is a copy
    of what a branch or the loop gave, and has no state. What it stands for runs for its sake alone:
    of the functions of a TF1 graph, nothing runs that no output depends on.
    """
    stateless = [op for op in targets if not op.op_def.is_stateful]
    # None where a dataset's function is built: it runs what its results depend on.
    manager = tf.compat.v1.get_default_graph().experimental_acd_manager
    if stateless and manager is not None:
        with tf.control_dependencies(stateless):
            manager.run_independently(tf.no_op())
