"""A train_op of one step, and the steps of the checkpoints in a folder."""

import os

import tensorflow.compat.v1 as tf


def checkpoint_steps(model_dir) -> list[int]:
    names = [n for n in os.listdir(model_dir) if n.endswith(".index")]
    return sorted(int(n.split("-")[1].split(".")[0]) for n in names)


def gradient_descent(loss, params=None):
    step = tf.train.get_global_step()
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
