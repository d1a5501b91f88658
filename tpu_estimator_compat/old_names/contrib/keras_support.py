"""`tf.contrib.tpu.keras_to_tpu_model`: a Keras model that trains with `fit`, off TPU."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

_ON_TPU = (
    "keras_to_tpu_model does not place a model on a TPU. Build and compile the Keras model inside "
    "of `with tf.distribute.TPUStrategy(resolver).scope():`, and call its fit."
)


class TPUDistributionStrategy:
    """The `strategy` argument of `keras_to_tpu_model`; TensorFlow chooses the devices."""

    def __init__(self, tpu_cluster_resolver: Any = None, using_single_core: bool = False):
        self._tpu_cluster_resolver = tpu_cluster_resolver
        self._using_single_core = using_single_core


class KerasTPUModel(tf_keras.Model):
    """A model that shares layers and variables with a functional or sequential model.

    The `x` of `fit`, `evaluate` and `predict` may be a function that returns a dataset.
    """

    def __init__(self, cpu_model: Any):
        super().__init__(inputs=cpu_model.inputs, outputs=cpu_model.outputs, name=cpu_model.name)
        self._cpu_model = cpu_model

    def fit(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        return super().fit(_called(x), *args, **kwargs)

    def evaluate(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        return super().evaluate(_called(x), *args, **kwargs)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return super().predict(_called(x), *args, **kwargs)

    def sync_to_cpu(self) -> Any:
        """The original model; it shares the weights."""
        return self._cpu_model


def keras_to_tpu_model(
    model: Any, strategy: TPUDistributionStrategy | None = None
) -> KerasTPUModel:
    """A model for `compile`, `fit`, `evaluate` and `predict`, with the layers of `model`.

    Compile it even if `model` is compiled. `strategy` is ignored: TensorFlow chooses the devices.

    Raises:
      TypeError: `strategy` is of another type.
      NotImplementedError: TensorFlow sees a TPU, which the model would not use.
    """
    if strategy is not None and not isinstance(strategy, TPUDistributionStrategy):
        raise TypeError(
            "`strategy` must be an instance of `tf.contrib.tpu.TPUDistributionStrategy`, got "
            f"{strategy!r}."
        )
    if tf.config.list_logical_devices("TPU"):
        raise NotImplementedError(_ON_TPU)
    return KerasTPUModel(model)


def _called(x: Any) -> Any:
    return x() if callable(x) and not isinstance(x, tf_keras.utils.Sequence) else x


__all__ = ["KerasTPUModel", "TPUDistributionStrategy", "keras_to_tpu_model"]
