"""The graph that legacy functions build in."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_KEPT = 64 * 2**20  # bytes of a GraphDef; larger ones hold constants that take long to copy, too


class LegacyGraph(tf.Graph):
    """A TF1 graph that works out its shapes once, after it was finalized.

    A training that writes checkpoints asks for its GraphDef with shapes five times: for the text,
    twice for events, and for each checkpoint. TensorFlow asks every tensor for its shape each time.
    """

    _shaped: tuple[int, bytes] | None = None

    def as_graph_def(
        self, from_version: int | None = None, add_shapes: bool = False, **kwargs: Any
    ) -> tf.compat.v1.GraphDef:
        """The graph as a message, which the caller may change.

        Args:
          from_version: asks for the nodes since then only.
          add_shapes: whether nodes have the shapes of their outputs, as `_output_shapes`.
          **kwargs: arguments of later versions of TensorFlow.
        """
        if from_version is not None or not add_shapes or not self.finalized:
            return super().as_graph_def(from_version, add_shapes, **kwargs)
        if self._shaped is None or self._shaped[0] != self.version:
            graph_def = super().as_graph_def(add_shapes=True, **kwargs)
            self._shaped = None
            if graph_def.ByteSize() <= _KEPT:
                self._shaped = (self.version, graph_def.SerializeToString())
            return graph_def
        return tf.compat.v1.GraphDef.FromString(self._shaped[1])
