"""Except with `use_tpu=True`, makes every optimizer exchange gradients, as under a strategy.

On a TPU the user says where replicas exchange gradients (CrossShardOptimizer). Under
`RunConfig(train_distribute=...)` every optimizer did. TF1's optimizers averaged gradients:
`compute_gradients` divided the loss by the number of replicas and `apply_gradients` summed. Keras'
optimizers summed, and the user, or a compiled Keras 2 model in a graph, scaled the loss. A captured
graph has no strategy, so these ops are built here, with CrossReplicaSum. Models that ask the
strategy for the number of replicas get it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from keras.src.backend.tensorflow.optimizer import TFOptimizer

from tpu_estimator_compat.engine.capture.patches import Function, patched
from tpu_estimator_compat.tf_internals import tpu_ops

_Optimizer = tf.compat.v1.train.Optimizer

APIS: list[Any] = [tf, tf.compat.v1, tf.compat.v2]
"""Modules that models may use as `tf`; other modules that cache its functions add themselves."""


@contextlib.contextmanager
def exchanging_optimizers(replicas: int) -> Iterator[None]:
    if replicas == 1:
        yield
        return
    from tf_keras.src.utils import losses_utils

    strategy = _strategy(replicas)
    with contextlib.ExitStack() as patches:
        patches.enter_context(
            patched(_Optimizer, "compute_gradients", functools.partial(_dividing, replicas))
        )
        # A compiled model scales its loss with this function.
        patches.enter_context(
            patched(
                losses_utils,
                "scale_loss_for_distribution",
                lambda _, loss: loss / replicas,
            )
        )
        # TensorFlow's modules last: reading the others may copy the real function from them.
        for api in reversed(APIS):
            patches.enter_context(patched(api.distribute, "get_strategy", lambda _: strategy))
        for kind, method in _methods():
            patches.enter_context(patched(kind, method, functools.partial(_summing, replicas)))
        yield


def _dividing(
    replicas: int, compute: Function, self: Any, loss: Any, *args: Any, **kwargs: Any
) -> Any:
    return compute(self, loss / replicas, *args, **kwargs)


def _strategy(replicas: int) -> tf.distribute.Strategy:
    """TensorFlow's default strategy with another number of replicas."""
    default = tf.distribute.get_strategy()
    said = {"num_replicas_in_sync": property(lambda strategy: replicas)}
    kind: Any = type(type(default).__name__, (type(default),), said)
    shown = kind.__new__(kind)  # a strategy cannot be copied
    vars(shown).update(vars(default))
    return shown


def _methods() -> list[tuple[type, str]]:
    """The methods by which optimizers get exchanged gradients; tf_keras takes seconds to import."""
    from tf_keras.src.optimizers.legacy.optimizer_v2 import OptimizerV2
    from tf_keras.src.optimizers.optimizer import Optimizer

    return [
        (_Optimizer, "apply_gradients"),
        (OptimizerV2, "_aggregate_gradients"),
        (Optimizer, "aggregate_gradients"),
        (TFOptimizer, "_all_reduce_sum_gradients"),
    ]


def _summing(
    replicas: int, method: Function, self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any
) -> Any:
    """Calls the optimizer's method with gradients that are summed over replicas."""
    summed = [(_summed(gradient, replicas), var) for gradient, var in grads_and_vars]
    return method(self, summed, *args, **kwargs)


def _summed(gradient: Any, replicas: int) -> Any:
    if gradient is None:
        return None
    return tpu_ops.cross_replica_sum(tf.convert_to_tensor(gradient), [list(range(replicas))])
