"""host_call of TPUEstimatorSpec with use_tpu=False, in every mode."""

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


def _with_host_call(function, tensors_of=None, modes=("train",)):
    """A model_fn whose spec has a host_call in some modes."""

    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)
        if mode not in modes:
            return spec
        make = tensors_of or (lambda s: [tf.reshape(tf.train.get_global_step(), [1])])
        return models.changed(spec, host_call=(function, make(spec)))

    return model_fn


def _noted(record, *name):
    """A function of tensors that records their values, once per call."""

    def note(*values):
        record(*name, *[np.asarray(v).tolist() for v in values])
        return np.int32(0)

    return note


def called_in_a_prediction(model_dir, record):
    """A host_call of a PREDICT spec."""

    def function(step):
        return tf.py_func(_noted(record), [step], tf.int32)

    estimator = models.tpu_estimator(model_dir, _with_host_call(function, modes=("infer",)))
    return list(estimator.predict(models.tpu_batches(2)))


def _writes(folder, condition=True):
    def function(step, loss):
        summary = tf.compat.v2.summary
        writer = summary.create_file_writer(folder, max_queue=1000, flush_millis=100000)
        with writer.as_default(), summary.record_if(condition):
            summary.scalar("loss_on_host", tf.reduce_mean(loss), step=step[0])
            summary.scalar("step_on_host", step[0], step=step[0])
            return tf.summary.all_v2_summary_ops()

    return function


def _step_and_loss(spec):
    return [tf.reshape(tf.train.get_global_step(), [1]), tf.reshape(spec.loss, [1])]


def writes_summaries_in_an_evaluation(model_dir, record):
    """An EVAL host_call that writes."""
    fn = _with_host_call(_writes(model_dir + "/eval_host"), _step_and_loss, ("eval",))
    return models.tpu_estimator(model_dir, fn).evaluate(models.tpu_batches(), steps=3)


def writes_nothing_if_so_told(model_dir, record):
    fn = _with_host_call(_writes(model_dir, condition=False), _step_and_loss)
    models.tpu_estimator(model_dir, fn).train(models.tpu_batches(), steps=3)


def writer_in_the_model_fn(model_dir, record):
    """A writer made in the model_fn of a TPUEstimator, without host_call."""

    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)
        summary = tf.compat.v2.summary
        with summary.create_file_writer(model_dir + "/v2").as_default(), summary.record_if(True):
            step = tf.train.get_or_create_global_step()
            summary.scalar("in_model_fn", features["x"][0], step=step)
        with tf.control_dependencies([spec.train_op]):
            return models.changed(spec, train_op=tf.group(tf.summary.all_v2_summary_ops()))

    models.tpu_estimator(model_dir, model_fn).train(models.tpu_batches(), steps=4)


def nothing_returned(model_dir, record):
    """A call that returns None."""

    def function(step):
        record("called", len(step.shape))

    estimator = models.tpu_estimator(model_dir, _with_host_call(function))
    estimator.train(models.tpu_batches(), steps=2)


def a_call_with_the_wrong_number(model_dir, record):
    """More tensors than the function takes."""

    def function(a, b):
        return a

    estimator = models.tpu_estimator(model_dir, _with_host_call(function))
    estimator.train(models.tpu_batches(), steps=1)


def a_call_that_is_not_a_pair(model_dir, record):
    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=spec.loss, train_op=spec.train_op, host_call=[lambda x: x]
        )

    models.tpu_estimator(model_dir, model_fn).train(models.tpu_batches(), steps=1)


def a_call_whose_function_is_none(model_dir, record):
    def model_fn(features, labels, mode, params):
        spec = models.tpu_model_fn(features, labels, mode, params)
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=spec.loss, train_op=spec.train_op, host_call=("no", [spec.loss])
        )

    models.tpu_estimator(model_dir, model_fn).train(models.tpu_batches(), steps=1)
