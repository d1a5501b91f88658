"""Records the gradients that model_fn's optimizer computes with respect to activations of tables.

As in `tensorflow.python.tpu.tpu_embedding_gradient`, activations depend on a trainable variable
that nothing else uses. Code that computes the gradients of the trainable variables, by any method,
computes the activations' gradients on the way.
"""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

NAME = "tpu_embedding_dummy_table_variable"
_COLLECTION = "tpu_embedding_dummy_table_variables"


class Interception:
    """Records the gradients in the default graph; make it before model_fn is called.

    `gradients` are by feature key, float32 of the activation's shape.
    """

    def __init__(self) -> None:
        self.gradients: dict[str, tf.Tensor] = {}
        self._graph = tf.compat.v1.get_default_graph()
        # Not a global variable, since checkpoints do not hold it; and not of get_variable, since
        # init_from_checkpoint would look for it.
        self._dummy = tf.compat.v1.Variable(
            tf.zeros([1]),
            name=NAME,
            use_resource=True,
            trainable=True,
            collections=[_COLLECTION, tf.compat.v1.GraphKeys.LOCAL_VARIABLES],
        )
        self._value = self._dummy.read_value()

    def hooked(self, activations: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The activations for model_fn, which record their gradients."""
        return {key: self._hooked(key, tensor) for key, tensor in activations.items()}

    def _hooked(self, key: str, activation: tf.Tensor) -> tf.Tensor:
        @tf.custom_gradient
        def passed(dummy: tf.Tensor, values: tf.Tensor):
            def note(gradient: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
                if key in self.gradients:
                    raise RuntimeError(
                        f"Duplicate gradients (w.r.t. TPUEmbedding activations) generated for "
                        f"feature {key!r}: gradients of the trainable variables are computed more "
                        "than once, and only one of them may update the table. Put "
                        "tf.stop_gradient around the activations for all other gradients."
                    )
                self.gradients[key] = tf.convert_to_tensor(gradient)
                return tf.zeros_like(dummy), tf.zeros_like(values)

            return tf.identity(values), note

        return passed(self._value, activation)

    def hide(self) -> None:
        """Keeps the variable, and an optimizer's slots for it, out of checkpoints and warm starts.

        A run without TPU, or with other tables, lacks these variables. Call it after model_fn.
        """
        names = tf.compat.v1.GraphKeys
        for collection in (names.GLOBAL_VARIABLES, names.TRAINABLE_VARIABLES):
            variables = self._graph.get_collection_ref(collection)
            own = [v for v in variables if NAME in v.op.name.split("/")]
            variables[:] = [v for v in variables if NAME not in v.op.name.split("/")]
            if collection == names.GLOBAL_VARIABLES:
                for variable in own:
                    self._graph.add_to_collection(names.LOCAL_VARIABLES, variable)
