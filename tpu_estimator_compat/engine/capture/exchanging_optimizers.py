"""Optimizers under a strategy without TPU rules: they exchange gradients by themselves.

On a TPU the user says where replicas exchange gradients (CrossShardOptimizer). Under
`RunConfig(train_distribute=...)` every optimizer did it on its own: those of TF1 averaged, since
`compute_gradients` divided the loss by the number of replicas and `apply_gradients` summed over
them; those of Keras summed, and left the loss to the user, or to a Keras 2 model that was compiled
in a graph. A captured graph knows no strategy, so the same is written into it here, as
CrossReplicaSum ops. Models that ask the strategy for the number of replicas are told it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from keras.src.backend.tensorflow.optimizer import TFOptimizer

from tpu_estimator_compat.tf_internals import tpu_ops

_Optimizer = tf.compat.v1.train.Optimizer

APIS: list[Any] = [tf, tf.compat.v1, tf.compat.v2]
"""What models may call `tf`; others that keep its functions add themselves."""


@contextlib.contextmanager
def exchanging_optimizers(replicas: int) -> Iterator[None]:
    """While a graph is captured, makes optimizers exchange gradients among `replicas`."""
    if replicas == 1:
        yield
        return
    compute = _Optimizer.compute_gradients

    def compute_gradients(self: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
        return compute(self, loss / replicas, *args, **kwargs)

    from tf_keras.src.utils import losses_utils

    with contextlib.ExitStack() as patches:
        patches.enter_context(_replaced(_Optimizer, "compute_gradients", compute_gradients))
        # What a compiled model divides its loss by.
        patches.enter_context(
            _replaced(losses_utils, "scale_loss_for_distribution", lambda loss: loss / replicas)
        )
        _shown.append(_strategy(replicas))
        patches.callback(_shown.pop)
        # TensorFlow's own last: namespaces that find its function only now shall keep the real one.
        for api in reversed(APIS):
            patches.enter_context(_replaced(api.distribute, "get_strategy", _get_strategy))
        for kind, method in _methods():
            summing = _summing(getattr(kind, method), replicas)
            patches.enter_context(_replaced(kind, method, summing))
        yield


_shown: list[tf.distribute.Strategy] = []
_real_get_strategy = tf.distribute.get_strategy


def _get_strategy() -> tf.distribute.Strategy:
    """As TensorFlow's, but while a graph is captured; some of `APIS` keep what they find."""
    return _shown[-1] if _shown else _real_get_strategy()


def _strategy(replicas: int) -> tf.distribute.Strategy:
    """TensorFlow's default strategy, but for the number of replicas that it says."""
    default = tf.distribute.get_strategy()
    said = {"num_replicas_in_sync": property(lambda strategy: replicas)}
    kind: Any = type(type(default).__name__, (type(default),), said)
    shown = kind.__new__(kind)  # a strategy cannot be copied
    vars(shown).update(vars(default))
    return shown


def _methods() -> list[tuple[type, str]]:
    """The methods through which each kind of optimizer takes exchanged gradients.

    tf_keras is imported late: it takes seconds, and few runs have such a strategy.
    """
    from tf_keras.src.optimizers.legacy.optimizer_v2 import OptimizerV2
    from tf_keras.src.optimizers.optimizer import Optimizer

    return [
        (_Optimizer, "apply_gradients"),
        (OptimizerV2, "_aggregate_gradients"),
        (Optimizer, "aggregate_gradients"),
        (TFOptimizer, "_all_reduce_sum_gradients"),
    ]


def _summing(method: Callable[..., Any], replicas: int) -> Callable[..., Any]:
    """A method that takes pairs of gradients and variables, given sums over all replicas."""

    def with_sums(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        summed = [(_summed(gradient, replicas), var) for gradient, var in grads_and_vars]
        return method(self, summed, *args, **kwargs)

    return with_sums


@contextlib.contextmanager
def _replaced(kind: Any, method: str, other: Callable[..., Any]) -> Iterator[None]:
    before = getattr(kind, method)
    setattr(kind, method, other)
    try:
        yield
    finally:
        setattr(kind, method, before)


def _summed(gradient: Any, replicas: int) -> Any:
    """The gradient's sum over all replicas; None stays None."""
    if gradient is None:
        return None
    return tpu_ops.cross_replica_sum(tf.convert_to_tensor(gradient), [list(range(replicas))])
