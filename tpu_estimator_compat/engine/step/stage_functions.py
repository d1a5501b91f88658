"""Stages as functions that all replicas of a machine call.

Built into the step once for each of eight replicas, a stage takes TensorFlow eight times as long to
trace, to optimise and to make kernels for. TensorFlow instantiates a function once per device, so
replicas that share a device share one function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_def, kernel_state
from tpu_estimator_compat.engine.runtime import functions
from tpu_estimator_compat.tf_internals import handle_data_util

FEWEST_OPS = 500
"""Stages with fewer ops are built in for each replica: a function call would cost more."""


def is_shared(
    definition: graph_def.GraphDef, rewritten: Callable[[graph_def.NodeDef], bool]
) -> bool:
    """Whether a stage is the same for all replicas, and large enough for a function.

    `rewritten` says which nodes, outside of functions, take their state as an input.
    """
    if len(definition.node) < FEWEST_OPS:
        return False
    return not kernel_state.keeps_state(definition, but=rewritten)


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
