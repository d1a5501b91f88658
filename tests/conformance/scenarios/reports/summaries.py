"""Reports about summaries and event files."""

import os

import tensorflow as tf2
import tensorflow.compat.v1 as tf
from scenarios import models


def hooks_of_an_evaluation(model_dir, record):
    """After tensorflow#15332, #14042, models#4167: summaries of an evaluation, by a hook."""

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        if mode != "eval":
            return spec
        tf.summary.scalar("in_eval", tf.reduce_mean(labels))
        tf.summary.image("picture", tf.ones([1, 2, 2, 3]))
        folder = os.path.join(model_dir, "eval")
        hook = tf.train.SummarySaverHook(1, output_dir=folder, summary_op=tf.summary.merge_all())
        return spec._replace(evaluation_hooks=[hook])

    est = models.trained(model_dir, 2, model_fn)
    record(est.evaluate(models.batches(), steps=3))
    record(est.evaluate(models.batches(), steps=1))


def nothing_to_merge(model_dir, record):
    """After tensorflow#12974: a SummarySaverHook whose summary_op is None, or a list."""
    hook = tf.train.SummarySaverHook
    with tf.Graph().as_default():
        models.attempt(record, hook, 1, output_dir=model_dir, summary_op=tf.summary.merge_all())
        models.attempt(record, hook, 1, output_dir=model_dir)

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        both = [tf.summary.scalar("one", spec.loss), tf.summary.scalar("two", spec.loss * 2.0)]
        own = hook(2, output_dir=os.path.join(model_dir, "own"), summary_op=both)
        return spec._replace(training_hooks=[own])

    models.estimator(model_dir, model_fn).train(models.batches(), steps=3)


def summaries_of_version_2(model_dir, record):
    """After tensorflow#26408: tf.summary of TensorFlow 2 in a model_fn, with its own writer."""
    summary = tf2.compat.v2.summary

    class Opens(tf.train.SessionRunHook):
        def __init__(self, operations):
            self._operations = operations

        def after_create_session(self, session, coord):
            session.run(self._operations[0])

        def end(self, session):
            session.run(self._operations[1])

    def model_fn(features, labels, mode):
        step = tf.identity(tf.train.get_global_step())
        spec = models.model_fn(features, labels, mode)
        writer = summary.create_file_writer(os.path.join(model_dir, "v2"))
        with writer.as_default(), summary.record_if(tf.equal(step % 2, 0)):
            written = summary.scalar("loss", spec.loss, step=step)
        with tf.control_dependencies([written]):
            train_op = tf.group(spec.train_op)
        hook = Opens([writer.init(), writer.flush()])
        return spec._replace(train_op=train_op, training_hooks=[hook])

    models.estimator(model_dir, model_fn).train(models.batches(), steps=4)


def summaries_of_gradients(model_dir, record):
    """After neuralmonkey#48: histograms of gradients, of which a variable has none."""

    def model_fn(features, labels, mode):
        tf.get_variable("unused", [], initializer=tf.ones_initializer())
        loss = models.loss_of(features, labels)
        optimizer = tf.train.AdamOptimizer(0.1)
        pairs = optimizer.compute_gradients(loss)
        for gradient, variable in pairs:
            if gradient is None:
                record("no gradient", variable.op.name)
                continue
            tf.summary.histogram(variable.name.replace(":", "_") + "/gradient", gradient)
            tf.summary.scalar("norm", tf.global_norm([gradient]))
        train_op = optimizer.apply_gradients(pairs, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    models.estimator(model_dir, model_fn).train(models.batches(), steps=3)


def a_writer_that_is_shared(model_dir, record):
    """After cloudml-samples#73, baselines#1159: the FileWriter of the cache, used by a hook."""

    class Writes(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            value = tf.Summary(value=[tf.Summary.Value(tag="own", simple_value=1.0)])
            tf.summary.FileWriterCache.get(model_dir).add_summary(value, 7)

    est = models.estimator(model_dir)
    est.train(models.batches(), hooks=[Writes()], steps=2)
    est.evaluate(models.batches(), hooks=[Writes()], steps=1)


def a_text_and_a_curve(model_dir, record):
    """After tensorflow#17571 and TensorBoard's plugins: summaries with metadata, by hand."""

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        if mode == "train":
            tf.summary.text("words", tf.as_string(features["x"]))
            tf.summary.tensor_summary("raw", features["x"], collections=["own"])
            tf.summary.scalar("in a scope", spec.loss, family="fam")
            with tf.name_scope("scope"):
                tf.summary.audio("sound", tf.zeros([1, 8, 1]), 8, collections=["own"])
        return spec

    est = models.estimator(model_dir, model_fn, save_summary_steps=2)
    est.train(models.batches(), steps=3)
