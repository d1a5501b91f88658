"""Small legacy model_fns and input_fns that the estimator tests share."""

import numpy as np
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from support.untuned import untuned

FEATURES = 4
CLASSES = 3


def examples(count: int = 64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.RandomState(0)
    x = rng.normal(size=(count, FEATURES)).astype(np.float32)
    return x, (x.sum(axis=1) > 0).astype(np.int32)


def train_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices(examples())
    return untuned(dataset.repeat().batch(params["batch_size"], drop_remainder=True))


def finite_input_fn(count: int):
    """An input_fn of `count` examples, its last batch partial."""

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices(examples(count))
        return untuned(dataset.batch(params["batch_size"]))

    return input_fn


def logits_of(features):
    hidden = tf.get_variable("hidden", [FEATURES, 8], initializer=tf.glorot_uniform_initializer(1))
    output = tf.get_variable("output", [8, CLASSES], initializer=tf.glorot_uniform_initializer(2))
    return tf.matmul(tf.nn.relu(tf.matmul(features, hidden)), output)


def metric_fn(labels, logits):
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=-1))}


def make_model_fn(train_op=None, logits=logits_of, **spec_arguments):
    """A classifier's model_fn.

    Args:
      train_op: takes the loss and params, returns the train_op; None for Adam.
      logits: takes the features.
      **spec_arguments: further fields of the TRAIN spec: values, or functions without arguments.
    """

    def model_fn(features, labels, mode, params):
        found = logits(features)
        if mode == tpu.ModeKeys.PREDICT:
            predictions = {"class": tf.argmax(found, axis=-1), "features": features}
            return tpu.TPUEstimatorSpec(mode, predictions=predictions)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, found)
        if mode == tpu.ModeKeys.EVAL:
            metrics = (metric_fn, [labels, found])
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
        fields = {k: v() if callable(v) else v for k, v in spec_arguments.items()}
        op = (train_op or adam)(loss, params)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=op, **fields)

    return model_fn


def adam(loss, params):
    optimizer = tf.train.AdamOptimizer(0.01)
    if params["use_tpu"]:
        optimizer = tpu.CrossShardOptimizer(optimizer)
    return optimizer.minimize(loss, global_step=tf.train.get_global_step())


def training_spec(mode, loss, optimizer):
    """The spec of a training with an optimizer of TensorFlow 1, on any number of replicas."""
    train_op = tpu.CrossShardOptimizer(optimizer).minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def gradient_descent(loss, params=None):
    step = tf.train.get_global_step()
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)


def make_estimator(model_dir, model_fn=None, *, use_tpu=False, loop=5, tpu_config=None, **kwargs):
    """A TPUEstimator with batches of 16; `kwargs` go to RunConfig where it knows them."""
    names = ("params", "warm_start_from", "eval_on_tpu", "embedding_config_spec")
    own = {k: kwargs.pop(k) for k in names if k in kwargs}
    for k in ("train_batch_size", "eval_batch_size", "predict_batch_size"):
        own[k] = kwargs.pop(k, 16)
    config = tpu.RunConfig(
        model_dir=str(model_dir),
        tpu_config=tpu_config or tpu.TPUConfig(iterations_per_loop=loop),
        **{"save_summary_steps": 0, "tf_random_seed": 1, **kwargs},
    )
    return tpu.TPUEstimator(model_fn or make_model_fn(), config=config, use_tpu=use_tpu, **own)


def steps_done(estimator):
    return int(estimator.get_variable_value("global_step"))


class Fetching(tf.train.SessionRunHook):
    """Keeps what it fetches in each run; `fetches` may be a function of nothing."""

    def __init__(self, fetches):
        self._fetches, self.seen = fetches, []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(
            self._fetches() if callable(self._fetches) else self._fetches
        )

    def after_run(self, run_context, run_values):
        self.seen.append(run_values.results)


class Calls(tf.train.SessionRunHook):
    """Needs no control, and counts how often it gets it."""

    count = 0

    def steps_until_control(self, global_step):
        return None

    def after_run(self, run_context, run_values):
        self.count += 1


def last_loss():
    return tf.get_collection(tf.GraphKeys.LOSSES)[-1]
