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

from tpu_estimator_compat.layers.batch_normalization import BatchNormalization  # noqa: F401


def _quiet(layer: Callable[..., Any]) -> Callable[..., Any]:
    """The layer function without tf_keras' warning that `tf.layers` is deprecated."""

    @functools.wraps(layer)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"`tf\.layers\.\w+` is deprecated", UserWarning)
            return layer(*args, **kwargs)

    return quiet


globals().update({n: _quiet(f) for n, f in vars(_legacy).items() if inspect.isfunction(f)})
