"""Legacy models with a host call."""

import threading
import time

import tensorflow.compat.v1 as tf
from support.legacy_models import adam, logits_of

import tpu_estimator_compat as tpu

LONG = 30.0  # seconds; nobody waits for so long where calls are made while steps run


def model_of(call, in_step=None, loss_of=None):
    """A model_fn whose host call is `call(step)`; `in_step(step)` is called in each step.

    `Calls` has both.
    """

    return model_with(lambda step, loss: (call, [step]), in_step, loss_of)


def model_with(host_call, in_step=None, loss_of=None):
    """A model_fn; `host_call(global_step, loss)` makes its host call from tensors of shape [1]."""

    def model_fn(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        loss = loss if loss_of is None else loss_of(loss)
        train_op = adam(loss, params) if mode == tpu.ModeKeys.TRAIN else tf.no_op()
        with tf.control_dependencies([train_op]):
            step = tf.reshape(tf.train.get_global_step().read_value(), [1])
        call = host_call(step, tf.reshape(loss, [1]))
        if in_step is not None and mode == tpu.ModeKeys.TRAIN:
            train_op = tf.group(train_op, tf.py_func(in_step, [step], []))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=call)

    return model_fn


class Calls:
    """A host call for `model_of`, and its steps.

    Attributes:
      made: the steps of the calls that were made.
      behind: for each step, the calls of earlier steps that were not made when it was made.
      released: calls wait until it is set, as it is at first.
      in_time: whether none waited in vain.
    """

    def __init__(self, seconds=0.0, fails_at=None):
        self.made, self.behind = [], []
        self.released = threading.Event()
        self.released.set()
        self.in_time = True
        self.fails_at = fails_at
        self._seconds = seconds

    def __call__(self, step):
        return tf.py_func(self._make, [step], [])

    def _make(self, step):
        self.in_time = self.released.wait(LONG) and self.in_time
        if self._seconds:
            time.sleep(self._seconds)
        if step[0] == self.fails_at:
            raise ValueError(f"host call of step {step[0]}")
        self.made.append(int(step[0]))

    def in_step(self, step):
        self.behind.append(int(step[0]) - 1 - len(self.made))


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
