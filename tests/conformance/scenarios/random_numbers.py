"""Random ops with seeds: one stream per op and session, whatever a step or a hook fetches."""

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models
from support.sides.races import late_zero

DRAWS = {
    "uniform": lambda: tf.random_uniform([2], seed=1),
    "shuffle": lambda: tf.random_shuffle(tf.range(50), seed=2)[:3],
    "multinomial": lambda: tf.multinomial(tf.zeros([2, 1000]), 1, seed=3),
    "poisson": lambda: tf.random_poisson(100.0, [2], seed=4),
    "gamma": lambda: tf.random_gamma([2], 2.0, seed=5),
    "parameterized": lambda: tf.raw_ops.ParameterizedTruncatedNormal(
        shape=[2], means=0.0, stdevs=1.0, minvals=-2.0, maxvals=2.0, seed=1, seed2=6
    ),
    "sampler": lambda: tf.nn.log_uniform_candidate_sampler(
        tf.constant([[1]], tf.int64), 1, 5, True, 1000, seed=7
    )[0],
    "box": lambda: tf.image.sample_distorted_bounding_box(
        [99, 99, 3], tf.constant([[[0.1, 0.1, 0.9, 0.9]]]), seed=8
    )[0],
}


def _model_fn(features, labels, mode):
    """Keeps what each step drew in rows of a variable."""
    drawn = [tf.reshape(tf.cast(draw(), tf.float32), [-1])[:2] for draw in DRAWS.values()]
    row = tf.identity(tf.concat(drawn, axis=0), "row")
    step = tf.train.get_global_step()
    rows = tf.get_variable(
        "rows", [12, row.shape[0] or 16], initializer=tf.zeros_initializer(), trainable=False
    )
    loss = tf.reduce_sum(row)
    tf.summary.histogram("row", row)
    with tf.control_dependencies([tf.scatter_update(rows, step, row)]):
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.assign_add(step, 1))


def steps_of_several_fetches(model_dir, record):
    """Steps alone, with summaries, and with what a hook fetches: each is another function."""
    est = models.estimator(model_dir, _model_fn, save_summary_steps=3)
    hook = tf.train.LoggingTensorHook({"the_row": "row:0"}, every_n_iter=4)
    est.train(models.batches(), hooks=[hook], steps=9)
    record(np.round(est.get_variable_value("rows"), 4).tolist())
    est.train(models.batches(), steps=2)  # a new session begins the streams anew
    record(np.round(est.get_variable_value("rows"), 4).tolist())


class _Drawing(tf.train.SessionRunHook):
    """Draws twice before a step, once in it, and once after it."""

    def __init__(self, record, tensors):
        self._record, self._tensors = record, tensors

    def _draw(self, context, name):
        values = context.session.run(self._tensors)
        self._record(name, {key: np.round(value, 4).tolist() for key, value in values.items()})

    def before_run(self, context):
        self._draw(context, "before")
        self._draw(context, "before")
        return tf.train.SessionRunArgs(self._tensors)

    def after_run(self, context, values):
        found = {key: np.round(value, 4).tolist() for key, value in values.results.items()}
        self._record("in the step", found)
        self._draw(context, "after")


def hooks_that_draw(model_dir, record):
    def model_fn(features, labels, mode):
        tensors = {name: draw() for name, draw in DRAWS.items()}
        sums = [tf.reduce_sum(tf.cast(tensor, tf.float32)) for tensor in tensors.values()]
        weight = models.weight()
        loss = tf.square(weight - 1e-3 * tf.add_n(sums))
        change = 1e-3 * tf.add_n(sums) + late_zero()
        with tf.control_dependencies([tf.assign_add(weight, change)]):
            op = tf.assign_add(tf.train.get_global_step(), 1)
        hooks = [_Drawing(record, tensors)]
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=op, training_hooks=hooks)

    est = models.estimator(model_dir, model_fn)
    est.train(models.batches(), steps=3)
    record(est.get_variable_value("w"))
