"""A script whose input, made by Python, blocks or fails: `blocked_input.py KIND WHAT MODEL_DIR`."""

import signal
import sys
import threading
import time

import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import estimator as estimators

kind, what, model_dir = sys.argv[1:]
# A shell that runs the tests in its background has them, and this, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
made = 0


def value():
    global made
    made += 1
    if kind == "ahead" and made < 30:
        return np.float32(made)  # training is far behind when this blocks
    if made > 4 and what == "fails":
        raise RuntimeError("no more of this")
    if made > 4:
        print("blocked", flush=True)
        threading.Event().wait()
    return np.float32(made)


def generator():
    while True:
        yield value()


def dataset():
    return tf.data.Dataset.from_generator(generator, tf.float32, [])


ahead = dataset


def slowly(loss):
    def wait(loss):
        time.sleep(0.1 if kind == "ahead" else 0)
        return loss

    return tf.reshape(tf.py_func(wait, [loss], tf.float32), [])


def tensor():
    return tf.reshape(tf.py_func(value, [], tf.float32), [])


def queue():
    numbers = tf.FIFOQueue(2, [tf.float32], [[]])
    enqueue = numbers.enqueue(tensor())
    tf.train.add_queue_runner(tf.train.QueueRunner(numbers, [enqueue]))
    return numbers.dequeue()


def model_fn(features, labels, mode):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = (weight - features) ** 2
    with tf.control_dependencies([slowly(loss)]):
        loss = tf.identity(loss)
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return estimators.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimators.Estimator(model_fn, model_dir).train(globals()[kind])
