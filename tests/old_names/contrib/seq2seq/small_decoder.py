"""A small cell with given weights, in TensorFlow and in NumPy, for tests of decoders."""

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from support.sessions import session as session_of
from tf_keras.api._v1.keras.__internal__.legacy.rnn_cell import RNNCell

from tpu_estimator_compat import layers

BATCH, TIME, UNITS, IDS, END = 3, 5, 4, 6, 1
RANDOM = np.random.RandomState(0)
CELL = RANDOM.randn(4 * UNITS, UNITS).astype(np.float32) / 2
OUTPUT = RANDOM.randn(UNITS, IDS).astype(np.float32) * 2
TABLE = RANDOM.randn(IDS, UNITS).astype(np.float32)
INPUTS = RANDOM.randn(BATCH, TIME, UNITS).astype(np.float32)
MEMORY = RANDOM.randn(BATCH, 7, UNITS).astype(np.float32)
KEYS = RANDOM.randn(UNITS, UNITS).astype(np.float32)
LENGTHS = np.array([3, 5, 2], np.int32)
MEMORY_LENGTHS = np.array([7, 4, 1], np.int32)
STATE = RANDOM.randn(BATCH, UNITS).astype(np.float32)


class Cell(RNNCell):
    """tanh of inputs and state, with given weights."""

    @property
    def state_size(self) -> int:
        return UNITS

    @property
    def output_size(self) -> int:
        return UNITS

    def call(self, inputs: Any, state: Any) -> Any:
        joined = tf.concat([inputs, state], -1)
        state = tf.tanh(tf.matmul(joined, CELL[: joined.shape[-1]]))
        return state, state


def cell(inputs: Any, state: Any) -> Any:
    joined = np.concatenate([inputs, state], -1)
    return np.tanh(joined @ CELL[: joined.shape[-1]])


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def projection(dtype: Any = tf.float32) -> Any:
    return layers.Dense(
        IDS, use_bias=False, kernel_initializer=tf.constant_initializer(OUTPUT), dtype=dtype
    )


def values(build: Any) -> Any:
    with tf.Graph().as_default(), session_of() as session:
        tensors = build()
        session.run(tf.global_variables_initializer())
        return session.run(tensors)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def constants(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Gives kernels of layers, and the vector of scores, known values."""
    if name.endswith("/kernel"):
        attends = name.endswith("attention_layer/kernel")
        kwargs["initializer"] = tf.constant_initializer(CELL[: 2 * UNITS] if attends else KEYS)
    elif name.endswith("attention_v"):
        kwargs["initializer"] = tf.constant_initializer(0.5)
    return getter(name, *args, **kwargs)
