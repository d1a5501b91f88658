"""Legacy models with a host call."""

import tensorflow.compat.v1 as tf
from support.legacy_models import adam, logits_of

import tpu_estimator_compat as tpu


def model_of(call, in_step=None, loss_of=None):
    """A model_fn whose host call is `call(step)`; `in_step(step)` is called in each step."""

    def model_fn(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        if loss_of is not None:
            loss = loss_of(loss)
        train_op = adam(loss, params) if mode == tpu.ModeKeys.TRAIN else tf.no_op()
        with tf.control_dependencies([train_op]):
            step = tf.reshape(tf.train.get_global_step().read_value(), [1])
        if in_step is not None and mode == tpu.ModeKeys.TRAIN:
            train_op = tf.group(train_op, tf.py_func(in_step, [step], []))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=(call, [step]))

    return model_fn


def model_with(host_call):
    """A model_fn; `host_call(global_step, loss)` makes its host call from tensors of shape [1]."""

    def model_fn(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        train_op = adam(loss, params) if mode == tpu.ModeKeys.TRAIN else tf.no_op()
        with tf.control_dependencies([train_op]):
            step = tf.reshape(tf.train.get_global_step().read_value(), [1])
        call = host_call(step, tf.reshape(loss, [1]))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=call)

    return model_fn


class Recorder:
    """A host call that remembers the steps it was called for, all replicas' of each."""

    def __init__(self, as_dict=False):
        self.steps = []
        self._as_dict = as_dict

    def __call__(self, step, loss):
        tensors = {"loss": loss, "step": step} if self._as_dict else [step, loss]
        return self.record, tensors

    def record(self, step, loss):
        return tf.py_func(lambda s, _: self.steps.append(s.tolist()), [step, loss], [])
