"""Placeholders of the host part of a step: they stand for tensors of all replicas."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.spec.tpu_estimator_spec import HostCall, call_on_host, check_host_call


class HostPlaceholders:
    """Makes placeholders of the host part for tensors of all replicas.

    Args:
      same_on_all_replicas: whether all compute the same: the host gets the first replica's tensors,
        which are not concatenated and may be scalars.

    Attributes:
      made: the placeholders by `key()`, each with the replicas' tensor that it stands for.
    """

    def __init__(self, graph: tf.Graph, replicas: int, *, same_on_all_replicas: bool):
        self._graph = graph
        self.replicas = replicas
        self._same = same_on_all_replicas
        self.made: dict[Key, tuple[tf.Tensor, tf.Tensor]] = {}

    def over_replicas(self, tensor: tf.Tensor) -> tf.Tensor:
        """A placeholder for `tensor` concatenated over replicas: [replicas * batch, ...].

        Where replicas compute the same, it has the tensor's own shape; otherwise a scalar raises
        RuntimeError.
        """
        if tensor.shape.rank == 0 and not self._same:
            raise RuntimeError(
                f"All tensors outfed from TPU should preserve batch size dimension, but got scalar "
                f"{tensor}. Reshape it, for example with tf.reshape(tensor, [1])."
            )
        with self._graph.as_default():
            tensor = tf.convert_to_tensor(tensor)  # it may be a variable
            placeholder = tf.compat.v1.placeholder(
                tensor.dtype, self._shape(tensor.shape), name=f"over_replicas/{tensor.op.name}"
            )
        self.made[key(placeholder)] = (placeholder, tensor)
        return placeholder

    def _shape(self, shape: tf.TensorShape) -> tf.TensorShape:
        if self._same or shape.rank is None:
            return shape
        rows = None if shape[0] is None else shape[0] * self.replicas
        return tf.TensorShape([rows]).concatenate(shape[1:])

    def call(self, name: str, host_call: HostCall) -> Any:
        """Calls `host_call`'s function on placeholders for its tensors; returns the result.

        The captured graph must be the default graph.

        Args:
          name: the field of the spec, for messages: `eval_metrics` or `host_call`.
          host_call: `(function, tensors)`; a list is passed by position, a dict by name.

        Raises:
          RuntimeError: one of the tensors is a scalar.
          TypeError: one of them is no tensor.
        """
        check_host_call(name, host_call)  # a spec's _replace does not check
        function, tensors = host_call
        for tensor in tensors.values() if isinstance(tensors, dict) else tensors:
            if not hasattr(tensor, "shape"):
                raise TypeError(
                    f"{name}[1] must hold tensors, given: {tensor!r}. Convert it to one."
                )
        placeholders: Any
        if isinstance(tensors, dict):
            placeholders = {k: self.over_replicas(t) for k, t in tensors.items()}
        else:
            placeholders = [self.over_replicas(t) for t in tensors]
        return call_on_host(name, (function, placeholders))
