"""Builds receivers from expressions and reports them as plain data; runs here and in the original.

As a script it reads a list of expressions from stdin, and prints the reports.
"""

import json
import sys

import numpy as np
import tensorflow.compat.v1 as tf


def report(export, expression):
    with tf.init_scope():
        eager = tf.ones([2, 3])
    with tf.Graph().as_default():
        tools = {
            "export": export,
            "tf": tf,
            "np": np,
            "x": tf.placeholder(tf.float32, [None, 2], name="x"),
            "sparse": tf.sparse_placeholder(tf.int64, name="sparse"),
            "ragged": tf.ragged.placeholder(tf.int64, 1, name="ragged"),
            "eager": eager,
        }
        try:
            made = eval(expression, tools)
            return {"made": type(made).__name__, "fields": plain(made._asdict())}
        except Exception as error:  # The error is the outcome to compare.
            return {"error": type(error).__name__, "message": str(error)}


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tf.Tensor):
        return [value.name, value.dtype.name, str(value.shape)]
    return type(value).__name__


if __name__ == "__main__":
    from tensorflow_estimator.python.estimator.export import export_lib

    print(json.dumps([report(export_lib, expression) for expression in json.load(sys.stdin)]))
