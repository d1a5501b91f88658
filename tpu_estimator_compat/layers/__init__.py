"""`tf.layers`, which Keras 3 dropped: the TF1 layer functions and classes, as tf_keras keeps them.

Variable names, UPDATE_OPS and defaults are those of TF1: `dense/kernel`, `conv2d/bias`,
`batch_normalization/moving_mean`.
"""

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from tf_keras.api._v1.keras.__internal__.legacy import layers as _legacy
from tf_keras.api._v1.keras.__internal__.legacy.layers import *  # noqa: F403


def _quiet(layer: Callable[..., Any]) -> Callable[..., Any]:
    """The layer function without tf_keras' warning that `tf.layers` is deprecated."""

    @functools.wraps(layer)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"`tf\.layers\.\w+` is deprecated", UserWarning)
            return layer(*args, **kwargs)

    return quiet


globals().update({n: _quiet(f) for n, f in vars(_legacy).items() if inspect.isfunction(f)})


class BatchNormalization(_legacy.BatchNormalization):
    __doc__ = _legacy.BatchNormalization.__doc__

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
