"""Multi-task training: treats gradients that are all zero as missing."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

_METHODS = ("_apply_dense", "_resource_apply_dense", "_apply_sparse", "_resource_apply_sparse")


class MultitaskOptimizerWrapper:
    """Modifies an optimizer so that an all-zero gradient changes neither variable nor slots."""

    def __init__(self, opt: tf.train.Optimizer):
        if not isinstance(opt, tf.train.Optimizer):
            raise TypeError("Supplied optimizer must be an instance of tf.train.Optimizer")
        self._opt = opt
        for name in _METHODS:
            setattr(opt, name, _unless_zero(getattr(opt, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def _unless_zero(apply: Any) -> Any:
    def wrapped(grad: Any, *args: Any) -> tf.Operation:
        def do_apply() -> tf.Operation:
            with tf.control_dependencies([apply(grad, *args)]):
                return tf.no_op()

        values = grad.values if isinstance(grad, tf.IndexedSlices) else grad
        return tf.cond(tf.equal(tf.count_nonzero(values), 0), tf.no_op, do_apply)

    return wrapped


def clip_gradients_by_global_norm(
    gradients_variables: list[tuple[Any, Any]], clip_norm: Any = 20.0
) -> tuple[list[tuple[Any, Any]], tf.Tensor]:
    """Pairs of clipped gradients and variables, and the global norm before clipping."""
    gradients, variables = zip(*gradients_variables, strict=True)
    # All-zero gradients add nothing to the norm.
    norm = tf.global_norm(gradients)
    clipped, _ = tf.clip_by_global_norm(gradients, clip_norm, use_norm=norm)
    return list(zip(clipped, variables, strict=True)), norm
