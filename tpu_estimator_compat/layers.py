"""`tf.layers`, which Keras 3 dropped: the TF1 layer functions and classes, as tf_keras keeps them.

Variable names, UPDATE_OPS and defaults are those of TF1: `dense/kernel`, `conv2d/bias`,
`batch_normalization/moving_mean`.
"""

from __future__ import annotations as _annotations

import functools as _functools
import inspect as _inspect
from collections.abc import Callable as _Callable
from typing import Any as _Any

from tf_keras.api._v1.keras.__internal__.legacy import layers as _legacy
from tf_keras.api._v1.keras.__internal__.legacy.layers import *  # noqa: F403


class BatchNormalization(_legacy.BatchNormalization):
    __doc__ = _legacy.BatchNormalization.__doc__

    def __init_subclass__(cls, **kwargs: _Any) -> None:
        """Lets subclasses average moments over replicas as in TensorFlow 1, which had no masks."""
        super().__init_subclass__(**kwargs)
        for name in ("_moments", "_calculate_mean_and_var"):
            method = vars(cls).get(name)
            if callable(method) and not _takes_mask(method):
                setattr(cls, name, _called_without_mask(method))


def _takes_mask(method: _Callable[..., _Any]) -> bool:
    parameters = _inspect.signature(method).parameters.values()
    return any(p.name == "mask" or p.kind is p.VAR_KEYWORD for p in parameters)


def _called_without_mask(method: _Callable[..., _Any]) -> _Callable[..., _Any]:
    @_functools.wraps(method)
    def called(
        self: _Any, inputs: _Any, reduction_axes: _Any, keep_dims: bool, mask: _Any = None
    ) -> _Any:
        del mask
        return method(self, inputs, reduction_axes, keep_dims)

    return called
