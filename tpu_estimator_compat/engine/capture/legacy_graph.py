"""The graph in which legacy functions build."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_KEPT = 64 * 2**20  # bytes of a GraphDef; larger ones have constants, which are slow to copy


class LegacyGraph(tf.Graph):
    """A TF1 graph that, once finalized, infers its shapes only once.

    A training that writes checkpoints asks for the GraphDef with shapes five times: for the text,
    twice for events, and for each checkpoint. TensorFlow asks every tensor for its shape each time.
    """

    _shaped: tuple[int, bytes] | None = None

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
