"""`tf.layers.BatchNormalization`, which accepts subclasses written for TensorFlow 1."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tf_keras.api._v1.keras.__internal__.legacy import layers


class BatchNormalization(layers.BatchNormalization):
    __doc__ = layers.BatchNormalization.__doc__

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Accepts subclasses whose methods for moments take no `mask`, as in TensorFlow 1."""
        super().__init_subclass__(**kwargs)
        for name in ("_moments", "_calculate_mean_and_var"):
            method = vars(cls).get(name)
            if callable(method) and not _takes_mask(method):
                setattr(cls, name, _called_without_mask(method))


def _takes_mask(method: Callable[..., Any]) -> bool:
    parameters = inspect.signature(method).parameters.values()
    return any(p.name == "mask" or p.kind is p.VAR_KEYWORD for p in parameters)


def _called_without_mask(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(
        self: Any, inputs: Any, reduction_axes: Any, keep_dims: bool, mask: Any = None
    ) -> Any:
        del mask
        return method(self, inputs, reduction_axes, keep_dims)

    return called
