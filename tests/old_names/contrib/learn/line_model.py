"""A model_fn of `tf.contrib.learn`, and its inputs."""

import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import learn

LINE = np.array([1.0, 2.0, 3.0, 4.0], np.float32)


def line(features, labels, mode, params):
    weight = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    y = features["x"] * weight
    if mode == learn.ModeKeys.INFER:
        return learn.ModelFnOps(mode, y)
    loss = tf.reduce_mean((y - labels) ** 2)
    train = tf.train.GradientDescentOptimizer(params["rate"]).minimize(loss)
    train_op = tf.group(train, tf.assign_add(tf.train.get_global_step(), 1))
    return learn.ModelFnOps(mode, y, loss, train_op)


def line_input_fn():
    return {"x": tf.constant(LINE)}, tf.constant(1.0 - LINE)


def fitted(folder, **arguments):
    estimator = learn.Estimator(line, str(folder), params={"rate": 0.01}, **arguments)
    return estimator.fit(input_fn=line_input_fn, steps=8)
