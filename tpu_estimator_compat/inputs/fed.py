"""Input that hooks feed: input_fn returned placeholders, or what it computes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.program import graph_ops
from tpu_estimator_compat.program.session import GraphSession
from tpu_estimator_compat.runtime import eager

_PLACEHOLDER = "Placeholder"


class FedInput:
    """Elements whose placeholders get their values where a session runs a step.

    Args:
      session: of the graph in which input_fn ran.
      tensors: the flat tensors of an element.
    """

    def __init__(self, session: GraphSession, tensors: Sequence[tf.Tensor]):
        self._session = session
        self._tensors = list(tensors)
        self._values: list[np.ndarray] | None = None

    def dataset(self) -> tf.data.Dataset:
        """Elements of what was fed last, as tuples; nothing may read it ahead.

        Iterating raises InvalidArgumentError where nothing was fed.
        """

        @tf.autograph.experimental.do_not_convert
        def last(_: tf.Tensor) -> tuple[tf.Tensor, ...]:
            values = tf.numpy_function(self._last, [], [t.dtype for t in self._tensors])
            for value, tensor in zip(values, self._tensors, strict=True):
                value.set_shape(tensor.shape)
            return tuple(values)

        options = tf.data.Options()
        # Else tf.data reads ahead by itself, and gives what was fed before.
        options.experimental_optimization.inject_prefetch = False
        with eager.eager_mode(), tf.device("/cpu:0"):
            return tf.data.Dataset.from_tensors(0).repeat().map(last).with_options(options)

    def take(self, feed_dict: dict[Any, Any]) -> dict[Any, Any]:
        """Takes what is fed to this input.

        Args:
          feed_dict: of a session's run: values by tensor, or by its name.

        Returns:
          What is fed to the model.
        """
        own: dict[Any, Any] = {}
        others: dict[Any, Any] = {}
        for tensor, value in feed_dict.items():
            (own if self._owns(tensor) else others)[tensor] = value
        if own:
            self._values = self._session.run(self._tensors, own)
        return others

    def _owns(self, tensor: Any) -> bool:
        graph = self._session.graph
        if not isinstance(tensor, str):
            return getattr(tensor, "graph", None) is graph
        # Copies in the model's graph may have the names of what they are copies of.
        try:
            return graph.get_operation_by_name(tensor.partition(":")[0]).type == _PLACEHOLDER
        except KeyError:
            return False

    def _last(self) -> list[np.ndarray]:
        if self._values is None:
            names = [tensor.name for tensor in self._tensors]
            raise ValueError(  # TensorFlow makes an InvalidArgumentError of it
                f"You must feed a value for placeholder tensors: input_fn returned {names}, which "
                "are made of placeholders, and no hook feeds them in `before_run`."
            )
        return self._values


def are_fed(tensors: Sequence[tf.Tensor]) -> bool:
    """Whether tensors are made of placeholders."""
    made_of = graph_ops.ancestors([tensor.op for tensor in tensors], ())
    return any(op.type == _PLACEHOLDER for op in made_of)
