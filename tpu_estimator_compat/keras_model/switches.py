"""Checks the switches of Keras and TensorFlow that keep Keras' loops from running the steps."""

from __future__ import annotations

import keras

from tpu_estimator_compat.tf_internals import context


def check(method: str) -> None:
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise RuntimeError(
            f"{method}() of a keras_model() needs Keras on TensorFlow; KERAS_BACKEND or keras.json "
            f"says {backend!r}. Set KERAS_BACKEND=tensorflow before Python starts. train, evaluate "
            "and predict of the estimator need no backend."
        )
    if not context.executing_eagerly():
        raise RuntimeError(
            f"{method}() of a keras_model() needs eager execution, which is off: by "
            "tf.compat.v1.disable_eager_execution() or disable_v2_behavior(), by "
            "`with tf.Graph().as_default()`, or by a script of TensorFlow 1. Call it where eager "
            "execution is on, or call train, evaluate and predict of the estimator."
        )
