"""Makes wrong calls from expressions and reports their outcome; runs here and in the original.

As a script it reads a list of expressions from stdin, evaluates each with the original's names and
prints the reports.
"""

import functools
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import types

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
BATCH = 4


def input_fn(params=None):
    del params
    x = np.ones([BATCH, 1], np.float32)
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, x)).repeat()
    return data.batch(BATCH, drop_remainder=True)


def tpu_input_fn(params):
    """The same for TPUEstimators, which hand over params."""
    return input_fn(params)


def unlabelled_input_fn(params=None):
    del params
    return tf.data.Dataset.from_tensors({"x": tf.ones([BATCH, 1])})


def returning(value):
    """An input_fn that returns `value`, or what a function makes."""

    def result(params=None):
        del params
        return value() if callable(value) else value

    return result


def receiver_fn(estimator):
    def serving_input_receiver_fn():
        x = v1.placeholder(tf.float32, [None, 1], name="x")
        return estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    return serving_input_receiver_fn


def linear(features, labels, mode, spec_class, exchange=False, **changes):
    """The spec of a linear model, some of its fields changed; functions of them are called.

    Those of `replaced` are changed afterwards.
    """
    weight = v1.get_variable("weight", [1, 1], initializer=v1.zeros_initializer())
    scores = tf.matmul(features["x"], weight)
    fields = {"mode": mode, "predictions": {"score": scores}}
    if mode != "infer":
        loss = tf.reduce_mean((scores - labels) ** 2)
        step = v1.train.get_global_step()
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        if exchange:
            optimizer = v1.tpu.CrossShardOptimizer(optimizer)
        fields.update(loss=loss, train_op=optimizer.minimize(loss, step))
    replaced = changes.pop("replaced", {})
    for name, value in changes.items():
        fields[name] = value() if isinstance(value, types.LambdaType) else value
    return spec_class(**fields)._replace(**replaced)


def new_directory(root):
    """`directory()` is a new empty directory below `root`."""
    return functools.partial(tempfile.mkdtemp, dir=root)


def tools(estimator, tpu, root):
    directory = new_directory(root)

    def model_fn(**changes):
        def plain(features, labels, mode, params):
            del params
            return linear(features, labels, mode, estimator.EstimatorSpec, **changes)

        return plain

    def tpu_model_fn(**changes):
        def on_tpu(features, labels, mode, params):
            exchange = params["use_tpu"]
            return linear(features, labels, mode, tpu.TPUEstimatorSpec, exchange, **changes)

        return on_tpu

    def make(**arguments):
        given = {"model_fn": model_fn(), "model_dir": directory(), "params": {}, **arguments}
        return estimator.Estimator(**given)

    def make_tpu(**arguments):
        config = tpu.RunConfig(model_dir=directory(), **arguments.pop("config", {}))
        given = {
            "model_fn": tpu_model_fn(),
            "config": config,
            "use_tpu": False,
            "train_batch_size": BATCH,
            "eval_batch_size": BATCH,
            "predict_batch_size": BATCH,
        }
        return tpu.TPUEstimator(**{**given, **arguments})

    def trained(make_one=make):
        made = make_one()
        made.train(input_fn, steps=1)
        return made

    return {
        "E": estimator,
        "T": tpu,
        "tf": tf,
        "v1": v1,
        "np": np,
        "os": os,
        "partial": functools.partial,
        "ones": np.ones([BATCH, 1], np.float32),
        "CrossShardOptimizer": getattr(tpu, "CrossShardOptimizer", v1.tpu.CrossShardOptimizer),
        "Hook": v1.train.SessionRunHook,
        "Listener": v1.train.CheckpointSaverListener,
        "directory": directory,
        "estimator": make,
        "tpu_estimator": make_tpu,
        "model_fn": model_fn,
        "tpu_model_fn": tpu_model_fn,
        "trained": trained,
        "receiver_fn": receiver_fn(estimator),
        "input_fn": input_fn,
        "tpu_input_fn": tpu_input_fn,
        "unlabelled_input_fn": unlabelled_input_fn,
        "returning": returning,
    }


def _settled(message, root):
    """`message` without what differs from run to run."""
    message = re.sub(re.escape(root) + r"(/tmp\w+)?", "DIR", message)
    return re.sub(r" at 0x[0-9a-f]+", "", message)


def report(estimator, tpu, expression, before=None):
    """The error that an expression ends in.

    Args:
      estimator: what stands for `tf.estimator`.
      tpu: what stands for `tf.estimator.tpu`.
      expression: what is evaluated. An iterator that comes out is asked for its first element.
      before: environment variables to set for it.

    Returns:
      {"error": name of the type, "message": its text}; {} where there was none.
    """
    root = tempfile.mkdtemp()
    os.environ.pop("TF_CONFIG", None)
    os.environ.update(before or {})
    try:
        value = eval(expression, tools(estimator, tpu, root))
        if isinstance(value, types.GeneratorType):
            next(value)
        return {}
    except Exception as error:  # the error is the outcome
        return {"error": type(error).__name__, "message": _settled(str(error), root)}
    finally:
        os.environ.pop("TF_CONFIG", None)
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    ORIGINAL = tf.compat.v1.estimator
    print(json.dumps([report(ORIGINAL, ORIGINAL.tpu, *case) for case in json.load(sys.stdin)]))
