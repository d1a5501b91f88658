"""The graph that legacy functions build."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.capture import branch_values

_KEPT = 64 * 2**20  # bytes of a GraphDef; larger ones have constants, which are slow to copy


class LegacyGraph(tf.Graph):
    """A TF1 graph that takes tensors of its branches, and, once finalized, infers shapes only once.

    A training with two checkpoints asks for the GraphDef with shapes five times: for the text,
    twice for events, and for each checkpoint. TensorFlow asks every tensor for its shape each time.
    """

    _shaped: tuple[int, bytes] | None = None

    def control_dependencies(self, control_inputs: Any) -> Any:
        if isinstance(control_inputs, (list, tuple)):
            control_inputs = [branch_values.awaited(self, each) for each in control_inputs]
        return super().control_dependencies(control_inputs)

    def _create_op_internal(
        self,
        op_type: str,
        inputs: Any,
        dtypes: Any = None,
        input_types: Any = None,
        name: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> tf.Operation:
        if any(each.graph is not self for each in inputs):
            inputs = [branch_values.outside(self, each, name or op_type) for each in inputs]
        return super()._create_op_internal(
            op_type, inputs, dtypes, input_types, name, *args, **kwargs
        )

    def as_graph_def(
        self, from_version: int | None = None, add_shapes: bool = False, **kwargs: Any
    ) -> tf.compat.v1.GraphDef:
        if from_version is not None or not add_shapes or not self.finalized:
            return super().as_graph_def(from_version, add_shapes, **kwargs)
        if self._shaped is None or self._shaped[0] != self.version:
            graph_def = super().as_graph_def(add_shapes=True, **kwargs)
            self._shaped = None
            if graph_def.ByteSize() <= _KEPT:
                self._shaped = (self.version, graph_def.SerializeToString())
            return graph_def
        return tf.compat.v1.GraphDef.FromString(self._shaped[1])
