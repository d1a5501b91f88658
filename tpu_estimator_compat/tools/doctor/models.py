"""Small model_fns whose first steps are the same on every device, up to rounding.

Variables have the same initial values everywhere, and a variable records the losses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import layers as tf_layers
from tpu_estimator_compat.config import TPUConfig, TPURunConfig
from tpu_estimator_compat.estimator.tpu_estimator import TPUEstimator
from tpu_estimator_compat.spec import TPUEstimatorSpec

layers: Any = tf_layers  # for mypy: the module makes its names on access

STEPS = 3
"""The number of compared steps."""

BATCH = 64
DROPOUT_RATE = 0.25
SUMMANDS = 8
FEATURES = 64
_CLASSES, _WIDTH = 4, 16


class Values(tf.train.SessionRunHook):
    """Takes the values of all variables before the first step and after the last, by name.

    `times` are seconds of `time.perf_counter` at the end of each loop.
    """

    def __init__(self) -> None:
        self.first: dict[str, Any] = {}
        self.last: dict[str, Any] = {}
        self.times: list[float] = []

    def begin(self) -> None:
        self._variables = {v.op.name: v for v in tf.global_variables()}

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        self.first = session.run(self._variables)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.times.append(time.perf_counter())

    def end(self, session: Any) -> None:
        self.last = session.run(self._variables)


def train(
    model_fn: Callable[..., Any],
    model_dir: str | None,
    params: dict[str, Any],
    *,
    runtime: str,
    use_tpu: bool = True,
    shards: int | None = None,
    steps: int = STEPS,
    loop: int = STEPS,
    seed: int = 1,
) -> Values:
    """Trains one of this module's model_fns, and returns the values that a hook takes.

    Training ends at the global step `steps`; `loop` is the number of steps of a loop.
    """
    config = TPURunConfig(
        TPUConfig(iterations_per_loop=loop, num_shards=shards),
        runtime=runtime,
        tf_random_seed=seed,
        save_summary_steps=None,
        log_step_count_steps=None,
    )
    values = Values()
    estimator = TPUEstimator(
        model_fn, model_dir, config, params, use_tpu, BATCH, eval_on_tpu=use_tpu
    )
    estimator.train(_input_fn, max_steps=steps, hooks=[values])
    return values


def _input_fn(params: Any) -> tf.data.Dataset:
    del params
    random = np.random.RandomState(0)
    x = random.uniform(-1.0, 1.0, [STEPS * BATCH, FEATURES]).astype(np.float32)
    labels = random.randint(0, _CLASSES, [STEPS * BATCH]).astype(np.int32)
    return (
        tf.data.Dataset.from_tensor_slices((x, labels)).batch(BATCH, drop_remainder=True).repeat()
    )


def _initial(shape: Sequence[int], dtype: Any = None, partition_info: Any = None) -> Any:
    """Numbers of NumPy, the same for the same shape: runtimes draw different random numbers."""
    del partition_info
    limit = np.sqrt(6.0 / sum(map(int, shape)))
    random = np.random.RandomState(sum(map(int, shape)))
    return tf.constant(random.uniform(-limit, limit, [int(n) for n in shape]), dtype or tf.float32)


def _mlp(features: Any, rate: float) -> Any:
    hidden = layers.dense(features, 32, tf.tanh)
    hidden = layers.dropout(layers.dense(hidden, 32, tf.tanh), rate, training=True)
    return layers.dense(hidden, _CLASSES)


def _convnet(features: Any, rate: float) -> Any:
    images = tf.reshape(features, [-1, 8, 8, 1])
    images = layers.conv2d(images, 8, 3, padding="same", activation=tf.tanh)
    images = layers.average_pooling2d(images, 2, 2)
    images = layers.conv2d(images, 8, 3, padding="same", activation=tf.tanh)
    return layers.dense(layers.dropout(layers.flatten(images), rate, training=True), _CLASSES)


def _encoder(features: Any, rate: float) -> Any:
    tokens = layers.dense(tf.reshape(features, [-1, 8, 8]), _WIDTH)
    tokens += tf.get_variable("positions", [8, _WIDTH])
    query, key, value = tf.split(layers.dense(tokens, 3 * _WIDTH), 3, axis=-1)
    scores = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / _WIDTH**0.5)
    attended = layers.dense(tf.matmul(scores, value), _WIDTH)
    tokens = _normalized(tokens + layers.dropout(attended, rate, training=True))
    hidden = layers.dense(layers.dense(tokens, 32, _gelu), _WIDTH)
    tokens = _normalized(tokens + layers.dropout(hidden, rate, training=True))
    return layers.dense(tf.reduce_mean(tokens, axis=1), _CLASSES)


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + tf.erf(x / 2.0**0.5))


def _normalized(x: Any) -> Any:
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-6)


NETWORKS = {"mlp": _mlp, "convnet": _convnet, "encoder": _encoder}


def network(features: Any, labels: Any, mode: str, params: Any) -> TPUEstimatorSpec:
    """A classifier: `params["network"]` of `NETWORKS`, with dropout of `params["rate"]`."""
    with tf.variable_scope(params["network"], initializer=_initial):
        logits = NETWORKS[params["network"]](features, params["rate"])
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.05, 0.9))
    with tf.control_dependencies([_kept("losses", _summed(loss) / _summed(1.0))]):
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def dropout(features: Any, labels: Any, mode: str, params: Any) -> TPUEstimatorSpec:
    """Dropout alone: records the number of zeros, and the sum of their places."""
    del labels, params
    zeros = tf.equal(layers.dropout(tf.ones_like(features), DROPOUT_RATE, training=True), 0.0)
    # Integers whose sums are below 2**24: exact in float32, in any order.
    places = tf.reshape(tf.range(1.0, zeros.shape.num_elements() + 1), zeros.shape)
    zeros = tf.cast(zeros, tf.float32)
    values = {"places": tf.reduce_sum(zeros * places), "zeros": tf.reduce_sum(zeros)}
    kept = [_kept(name, _summed(value)) for name, value in values.items()]
    loss = tf.reduce_mean(zeros)
    with tf.control_dependencies(kept):
        return TPUEstimatorSpec(mode, loss=loss, train_op=_next_step())


def summed(features: Any, labels: Any, mode: str, params: Any) -> TPUEstimatorSpec:
    del labels, params
    total = _summed(tf.reduce_sum(features, axis=0))
    kept = tf.get_variable("total", [SUMMANDS], trainable=False, initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(total)
    with tf.control_dependencies([kept.assign(total)]):
        return TPUEstimatorSpec(mode, loss=loss, train_op=_next_step())


def _summed(value: Any) -> Any:
    return tf.tpu.cross_replica_sum(tf.convert_to_tensor(value))


def _next_step() -> Any:
    return tf.assign_add(tf.train.get_global_step(), 1)


def _kept(name: str, value: Any) -> Any:
    """Records a step's value in a variable with an element for each of the first `STEPS` steps."""
    kept = tf.get_variable(name, [STEPS], trainable=False, initializer=tf.zeros_initializer())
    step = tf.cast(tf.train.get_global_step(), tf.int32)
    return kept.assign(tf.where(tf.equal(tf.range(STEPS), step), tf.fill([STEPS], value), kept))
