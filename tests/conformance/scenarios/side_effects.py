"""Effects of ops in model_fn: prints, files, variables, in branches and loops, in every mode."""

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def _with_effect(make):
    """A model_fn whose input waits for `make(features, mode)`."""

    def model_fn(features, labels, mode):
        with tf.control_dependencies(make(features, mode)):
            x = tf.identity(features["x"])
        return models.model_fn({"x": x}, labels, mode)

    return model_fn


def _noted(record, *name):
    def note(*values):
        record(*name, *[np.asarray(v).tolist() for v in values])
        return np.int32(0)

    return note


def _in_every_mode(model_dir, make):
    estimator = models.estimator(model_dir, _with_effect(make))
    estimator.train(models.batches(2))
    estimator.evaluate(models.batches(2))
    return len(list(estimator.predict(models.batches(2))))


def the_old_print(model_dir, record):
    """tf.Print passes its tensor on."""

    def model_fn(features, labels, mode):
        x = tf.Print(features["x"], [features["x"]], "seen: ")
        return models.model_fn({"x": x}, labels, mode)

    estimator = models.estimator(model_dir, model_fn)
    estimator.train(models.batches(2))


def an_assertion_that_fails(model_dir, record):
    """tf.assert_less in an evaluation: the error's type."""

    def make(features, mode):
        return [tf.assert_less(features["x"], 0.2, message="too large")]

    estimator = models.estimator(model_dir, _with_effect(make))
    try:
        estimator.evaluate(models.batches(2))
    except Exception as error:
        return type(error).__name__, "too large" in str(error)


def an_error_in_a_py_func(model_dir, record):
    """An exception of Python in a step: the error's type."""

    def fails(x):
        raise KeyError("no key")

    estimator = models.estimator(
        model_dir, _with_effect(lambda f, mode: [tf.py_func(fails, [f["x"]], tf.int32)])
    )
    for call in (
        lambda: estimator.train(models.batches(2)),
        lambda: estimator.evaluate(models.batches(2)),
        lambda: list(estimator.predict(models.batches(2))),
    ):
        try:
            call()
        except Exception as error:
            record(type(error).__name__, "no key" in str(error))


def ops_that_nobody_asks_for(model_dir, record):
    """Ops that nothing depends on do not run."""

    def make(features, mode):
        tf.py_func(_noted(record, "unasked"), [features["x"]], tf.int32)
        tf.print("unasked", output_stream="file://unasked.txt")
        return []

    return _in_every_mode(model_dir, make)
