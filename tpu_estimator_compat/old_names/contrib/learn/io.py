"""`tf.contrib.learn.io`: input functions with the defaults of `tf.contrib.learn`."""

from __future__ import annotations

import functools

from tpu_estimator_compat.estimator import inputs

numpy_input_fn = functools.partial(inputs.numpy_input_fn, shuffle=True)
pandas_input_fn = functools.partial(inputs.pandas_input_fn, shuffle=True)

__all__ = ["numpy_input_fn", "pandas_input_fn"]
