"""Reports about train_and_evaluate, early stopping and loops of one's own."""

import os

import tensorflow.compat.v1 as tf
from scenarios import models


def _specs(most, stopping=(), **more):
    more = {"start_delay_secs": 0, "throttle_secs": 0, "steps": 1, **more}
    train = tf.estimator.TrainSpec(models.batches(), max_steps=most, hooks=list(stopping))
    return train, tf.estimator.EvalSpec(models.batches(), **more)


def early_stopping_that_does_not_stop(model_dir, record):
    """After tensorflow#40443: stop_if_no_decrease_hook, by seconds and by steps."""
    experimental = tf.estimator.experimental
    for name, more in (("seconds", {}), ("steps", {"run_every_secs": None, "run_every_steps": 1})):
        est = models.estimator(f"{model_dir}/{name}", save_checkpoints_steps=1)
        os.makedirs(est.eval_dir())
        hook = experimental.stop_if_no_decrease_hook(est, "constant", 2, min_steps=3, **more)
        known = tf.estimator.add_metrics(
            est, lambda labels: {"constant": tf.metrics.mean(tf.ones([1]))}
        )
        record(tf.estimator.train_and_evaluate(known, *_specs(8, [hook])))


def several_stopping_hooks(model_dir, record):
    """After early_stopping#2: hooks for several metrics, of which one does not exist."""
    est = models.estimator(model_dir, save_checkpoints_steps=2)
    os.makedirs(est.eval_dir())
    every = {"run_every_secs": None, "run_every_steps": 2}
    hooks = [
        tf.estimator.experimental.stop_if_lower_hook(est, "error", 0.05, **every),
        tf.estimator.experimental.stop_if_lower_hook(est, "loss_2", 10.0, **every),
        tf.estimator.experimental.make_early_stopping_hook(est, lambda: False, 5, None),
    ]
    record(tf.estimator.train_and_evaluate(est, *_specs(10, hooks)))
    models.attempt(
        record,
        tf.estimator.experimental.stop_if_lower_hook,
        est,
        "error",
        0.05,
        **{**every, "run_every_secs": 1},
    )


def each_checkpoint_is_evaluated(model_dir, record):
    """After tensorflow#17650, #21896, OpenNMT-tf#243: throttle_secs, and what is skipped."""
    for throttle in (0, 600):
        est = models.estimator(f"{model_dir}/{throttle}", save_checkpoints_steps=2)
        record(tf.estimator.train_and_evaluate(est, *_specs(6, throttle_secs=throttle)))
    models.attempt(record, tf.estimator.EvalSpec, models.batches(), throttle_secs=-1)
    models.attempt(record, tf.estimator.EvalSpec, models.batches(), steps=0)
    models.attempt(record, tf.estimator.TrainSpec, models.batches(), max_steps=0)


def metrics_that_a_hook_writes(model_dir, record):
    """After estimator#22, tensorflow#18394: early stopping reads what a hook wrote, in order."""
    est = models.estimator(model_dir, save_checkpoints_steps=1)
    folder = est.eval_dir()

    class Writes(tf.train.SessionRunHook):
        def end(self, session):
            step = session.run(tf.train.get_global_step())
            value = tf.Summary(value=[tf.Summary.Value(tag="bleu", simple_value=10.0 - step)])
            writer = tf.summary.FileWriterCache.get(folder)
            writer.add_summary(value, step)
            writer.flush()

    os.makedirs(folder)
    hook = tf.estimator.experimental.stop_if_no_increase_hook(
        est, "bleu", 2, run_every_secs=None, run_every_steps=1
    )
    tf.estimator.train_and_evaluate(est, *_specs(9, [hook], hooks=[Writes()]))
    record(est.get_variable_value("global_step"))


def trainings_to_a_step_that_is_reached(model_dir, record):
    """After horovod#565, tensorflow#13895: train to max_steps and evaluate, again and again."""
    est = models.estimator(model_dir)
    hook = models.Recording(record)
    for most in (2, 2, 1, 3):
        est.train(models.batches(), max_steps=most, hooks=[hook])
        for name, data in (("train", models.batches()), ("validation", models.batches(2))):
            record(name, est.evaluate(data, steps=1, name=name))


def an_evaluation_to_the_end_of_the_data(model_dir, record):
    """After tensorflow#22857, #21572: the last evaluation of a schedule, and one after."""
    est = models.estimator(model_dir, save_checkpoints_steps=2)
    train = tf.estimator.TrainSpec(models.batches(), max_steps=5)
    spec = tf.estimator.EvalSpec(models.batches(3), steps=None, name="x", throttle_secs=0)
    record(tf.estimator.train_and_evaluate(est, train, spec))
    record(est.evaluate(models.batches(3), name="after"))
