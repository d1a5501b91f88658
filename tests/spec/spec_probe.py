"""Builds specs from expressions and reports them as JSON; runs here and in the original.

As a script it reads a list of expressions from stdin, builds each with the original's classes in a
graph of its own and prints the reports.
"""

import functools
import importlib
import json
import sys

import tensorflow as tf

v1 = tf.compat.v1
ESTIMATOR = "tensorflow_estimator.python.estimator."
ORIGINAL = {
    "ModeKeys": ("mode_keys", "ModeKeys"),
    "EstimatorSpec": ("model_fn", "EstimatorSpec"),
    "TPUEstimatorSpec": ("tpu.tpu_estimator", "TPUEstimatorSpec"),
    "WarmStartSettings": ("estimator", "WarmStartSettings"),
    "default_warm_start_settings": ("estimator", "_get_default_warm_start_settings"),
}


def originals():
    return {
        name: getattr(importlib.import_module(ESTIMATOR + module), attribute)
        for name, (module, attribute) in ORIGINAL.items()
    }


def metric_fn(labels, scores):
    return {"accuracy": v1.metrics.accuracy(labels, scores)}


def foreign():
    with tf.Graph().as_default():
        return tf.constant(1.0, name="foreign")


def variable():
    return v1.get_variable("variable", [])


def summing_host_call(values):
    return [tf.reduce_sum(values, name="summed")]


def _text(value):
    """`value` by structure; objects whose class differs on purpose by what they are."""
    if isinstance(value, dict):
        return {str(key): _text(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_text(item) for item in value]
    if hasattr(value, "outputs") and not isinstance(value, tf.Operation):
        return [type(value).__name__, _text(value.outputs)]
    if isinstance(value, v1.train.SessionRunHook):
        return "hook"
    if isinstance(value, v1.train.Scaffold):
        return "scaffold"
    if isinstance(value, functools.partial):
        return f"partial {value.func.__name__}"
    return getattr(value, "__name__", None) or repr(value)


def _fields(value):
    if hasattr(value, "_fields"):
        return {"type": type(value).__name__, **_text(value._asdict())}
    return {"value": _text(value)}


def report(names, expression):
    tools = {
        "tf": tf,
        "v1": v1,
        "partial": functools.partial,
        "metric_fn": metric_fn,
        "foreign": foreign,
        "variable": variable,
        "summing_host_call": summing_host_call,
        "hook": v1.train.SessionRunHook,
    }
    with tf.Graph().as_default():
        tools["one"] = tf.constant(1.0, name="one")
        tools["pair"] = tf.constant([1.0, 2.0], name="pair")
        tools["step"] = tf.no_op(name="step")
        try:
            return {"fields": _fields(eval(expression, {**tools, **names}))}
        except Exception as error:  # The error is the outcome to compare.
            return {"error": type(error).__name__, "message": str(error)}


if __name__ == "__main__":
    ORIGINALS = originals()
    print(json.dumps([report(ORIGINALS, expression) for expression in json.load(sys.stdin)]))
