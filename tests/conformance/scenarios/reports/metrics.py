"""Reports about metrics, and what an evaluation says."""

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def _labelled(count=3):
    def input_fn():
        x = np.array([0.1, 0.9, 0.4, 0.8, 0.3, 0.7], np.float32)
        y = np.array([0, 1, 1, 1, 0, 0], np.int64)
        return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(2).take(count)

    return input_fn


def _model_fn(metrics, seen=None):
    """A model whose probability is the feature itself; metrics of labels and probabilities."""

    def model_fn(features, labels, mode):
        x = features["x"]
        loss = tf.reduce_mean(tf.square(models.weight() + x - tf.cast(labels, tf.float32)))
        return tf.estimator.EstimatorSpec(
            mode,
            loss=loss,
            train_op=models.descent(loss) if mode == "train" else None,
            eval_metric_ops=metrics(labels, x) if mode == "eval" else None,
        )

    return model_fn


def _evaluated(model_dir, record, metrics):
    est = models.estimator(model_dir, _model_fn(metrics))
    try:
        est.train(_labelled(), steps=1)
        record(est.evaluate(_labelled()))
    except Exception as error:
        record(type(error).__name__, str(error).splitlines()[0])


def values_that_are_no_pairs(model_dir, record):
    """After google-research#1835: "Values of eval_metric_ops must be (metric_value, update_op)"."""

    def variable():
        return tf.get_local_variable("v", [], initializer=tf.zeros_initializer())

    for name, made in (
        ("update", lambda y, x: {"m": variable().assign_add(1.0)}),
        ("list", lambda y, x: {"m": list(tf.metrics.mean(x))}),
        ("three", lambda y, x: {"m": (*tf.metrics.mean(x), tf.no_op())}),
        ("numbers", lambda y, x: {"m": (1.0, 2.0)}),
        ("variable", lambda y, x: {"m": (variable(), variable().assign_add(1.0))}),
        ("none", lambda y, x: {"m": (tf.metrics.mean(x)[1], None)}),
        ("operation", lambda y, x: {"m": (tf.no_op(), tf.metrics.mean(x)[1])}),
        ("no dict", lambda y, x: [tf.metrics.mean(x)]),
    ):
        with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
            _evaluated(f"{model_dir}/{name}", record, made)


def metrics_at_thresholds(model_dir, record):
    """After tensorflow#21093, #20418: metrics whose value is a variable, and a vector."""

    def made(labels, x):
        at = [0.2, 0.5]
        return {
            "count": tf.metrics.true_positives(labels, x > 0.5),
            "positives": tf.metrics.true_positives_at_thresholds(labels, x, at),
            "recall": tf.metrics.recall_at_thresholds(labels, x, at),
        }

    _evaluated(model_dir, record, made)


def a_matrix_that_is_updated(model_dir, record):
    """After tensorflow#23731: mean_iou, whose update is a matrix, and a matrix of one's own."""

    def made(labels, x):
        predicted = tf.cast(x > 0.5, tf.int64)
        matrix = tf.get_local_variable("matrix", [2, 2], initializer=tf.zeros_initializer())
        batch = tf.cast(tf.confusion_matrix(labels, predicted, 2), tf.float32)
        update = tf.assign_add(matrix, batch)
        return {
            "iou": tf.metrics.mean_iou(labels, predicted, 2),
            "per_class": tf.metrics.mean_per_class_accuracy(labels, predicted, 2),
            "matrix": (tf.convert_to_tensor(matrix), update),
        }

    _evaluated(model_dir, record, made)


def a_metric_of_two_metrics(model_dir, record):
    """After bert#800, tf_ner#49: F1, a value of two metrics, a group of two updates."""

    def made(labels, x):
        precision, update = tf.metrics.precision(labels, x > 0.5)
        recall, other = tf.metrics.recall(labels, x > 0.5)
        f1 = 2.0 * precision * recall / (precision + recall)
        return {"f1": (f1, tf.group(update, other)), "again": (f1, tf.identity(update))}

    _evaluated(model_dir, record, made)


def an_accuracy_of_the_training(model_dir, record):
    """After tensorflow#15115: the value of a metric in training is zero, its update is not."""

    def model_fn(features, labels, mode):
        spec = _model_fn(lambda labels, x: {})(features, labels, mode)
        value, update = tf.metrics.accuracy(labels, tf.cast(features["x"] > 0.5, tf.int64))
        tf.summary.scalar("value", value)
        tf.identity(value, "value")
        tf.identity(update, "updated")
        return spec

    # No summary beside the update: which comes first is chance.
    for name, every in (("value:0", 1), ("updated:0", None)):
        est = models.estimator(model_dir, model_fn, save_summary_steps=every)
        est.train(_labelled(), hooks=[models.Fetching(record, [name])])


def a_metric_that_is_reset(model_dir, record):
    """After minigo#346: metrics in training, whose variables are set back each second step."""

    def model_fn(features, labels, mode):
        step = tf.identity(tf.train.get_global_step())
        spec = _model_fn(lambda labels, x: {})(features, labels, mode)
        with tf.variable_scope("metrics"):
            update = tf.metrics.mean(features["x"])[1]
        own = tf.local_variables("metrics")
        with tf.control_dependencies([update]):
            shown = tf.identity(update, "shown")
        with tf.control_dependencies([shown]):
            then = tf.cond(
                tf.equal(step % 2, 1),
                lambda: tf.group([variable.assign(0.0) for variable in own]),
                tf.no_op,
            )
        with tf.control_dependencies([then]):
            return spec._replace(train_op=tf.group(spec.train_op))

    est = models.estimator(model_dir, model_fn)
    est.train(_labelled(), hooks=[models.Fetching(record, "shown:0")])


def a_classifiers_precision(model_dir, record):
    """After tensorflow#26465: add_metrics beside a canned model's own metrics of the same name."""
    column = tf.feature_column.numeric_column("x", shape=())
    est = tf.estimator.LinearClassifier([column], model_dir=model_dir)
    est.train(_labelled(), steps=2)

    def more(labels, predictions):
        classes = predictions["class_ids"]
        return {
            "precision": tf.metrics.precision(labels, classes),
            "own": tf.metrics.precision(labels, tf.reshape(classes, [-1])),
        }

    record(est.evaluate(_labelled()))
    record(tf.estimator.add_metrics(est, more).evaluate(_labelled(), name="more"))
