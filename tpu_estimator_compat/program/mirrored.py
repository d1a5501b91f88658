"""TF1 optimizers under a strategy without TPU rules: they average gradients by themselves.

On a TPU the user says where replicas exchange gradients (CrossShardOptimizer). Under
`RunConfig(train_distribute=...)` every TF1 optimizer did it on its own: `compute_gradients` divided
the loss by the number of replicas, `apply_gradients` summed over them. A captured graph knows no
strategy, so the same is written into it here, as CrossReplicaSum ops.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.python.tpu.ops import tpu_ops

_Optimizer = tf.compat.v1.train.Optimizer


@contextlib.contextmanager
def exchanging_optimizers(replicas: int) -> Iterator[None]:
    """While a graph is captured, makes TF1 optimizers exchange gradients among `replicas`."""
    if replicas == 1:
        yield
        return
    compute, apply = _Optimizer.compute_gradients, _Optimizer.apply_gradients

    def compute_gradients(self, loss, *args, **kwargs):
        return compute(self, loss / replicas, *args, **kwargs)

    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        summed = [(_summed(gradient, replicas), var) for gradient, var in grads_and_vars]
        return apply(self, summed, *args, **kwargs)

    _Optimizer.compute_gradients = compute_gradients
    _Optimizer.apply_gradients = apply_gradients
    try:
        yield
    finally:
        _Optimizer.compute_gradients = compute
        _Optimizer.apply_gradients = apply


def _summed(gradient, replicas: int):
    """The gradient's sum over all replicas; None stays None."""
    if gradient is None:
        return None
    return tpu_ops.cross_replica_sum(tf.convert_to_tensor(gradient), [list(range(replicas))])
