"""A small classifier for tests of `testing`, with parts that a test replaces by one with a bug."""

import numpy as np

import tpu_estimator_compat.v1 as tf

WIDTH, CLASSES, SIZE = 4, 3, 8
PREDICT, EVAL, TRAIN = "infer", "eval", "train"


def examples(size=SIZE):
    """Features [size, 4] of float32, and labels [size] of int32, which the features decide."""
    x = np.random.RandomState(0).normal(size=(size, WIDTH)).astype(np.float32)
    return x, np.argmax(x[:, :CLASSES], axis=1).astype(np.int32)


X, Y = examples()


def logits_of(features, training):
    return tf.layers.dense(features, CLASSES, name="dense")


def mean_loss(labels, logits, params):
    return tf.losses.sparse_softmax_cross_entropy(labels, logits)


def gradient_descent():
    return tf.train.GradientDescentOptimizer(0.1)


def train_wrapped(loss, optimizer=None):
    """The train_op of an optimizer in a CrossShardOptimizer."""
    wrapped = tf.tpu.CrossShardOptimizer(optimizer or gradient_descent())
    return wrapped.minimize(loss, tf.train.get_global_step())


def train_with_updates(loss):
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return train_wrapped(loss)


def predictions_of(logits):
    return {"logits": logits, "class": tf.argmax(logits, axis=-1)}


def accuracy(labels, logits):
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=-1))}


def classifier(
    logits_of=logits_of,
    loss_of=mean_loss,
    train=train_wrapped,
    predictions_of=predictions_of,
    metric_fn=accuracy,
    **spec_arguments,
):
    """The model_fn of a classifier.

    Args:
      logits_of: takes features and whether the mode is TRAIN.
      loss_of: takes labels, logits and params.
      train: takes the loss, returns the train_op.
      predictions_of, metric_fn: take logits, and labels and logits.
      **spec_arguments: further fields of the spec, each a function of logits.
    """

    def model_fn(features, labels, mode, params):
        logits = logits_of(features, mode == TRAIN)
        fields = {name: make(logits) for name, make in spec_arguments.items()}
        if mode == PREDICT:
            fields["predictions"] = predictions_of(logits)
            return tf.estimator.tpu.TPUEstimatorSpec(mode, **fields)
        fields["loss"] = loss_of(labels, logits, params)
        if mode == EVAL:
            fields["eval_metrics"] = (metric_fn, [labels, logits])
        else:
            fields["train_op"] = train(fields["loss"])
        return tf.estimator.tpu.TPUEstimatorSpec(mode, **fields)

    return model_fn


def failure(check, *args, **kwargs):
    """The message of a check that must fail, on one line."""
    try:
        check(*args, **kwargs)
    except AssertionError as error:
        return " ".join(str(error).split())
    raise RuntimeError(f"{check.__name__} found nothing")
