"""Reports about hooks of users."""

import os
import threading

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models


class _Hook(tf.train.SessionRunHook):
    """Methods are given as functions."""

    def __init__(self, **methods):
        vars(self).update(methods)


def results_without_fetches(model_dir, record):
    """After tensorflow#16743: after_run of a hook that asks for nothing is told of nothing."""
    told = {}

    def after_run(run_context, run_values):
        told[type(run_context).__name__] = [type(each).__name__ for each in run_values]

    hook = _Hook(after_run=after_run)
    est = models.estimator(model_dir)
    est.train(models.batches(), hooks=[hook], steps=1)
    est.evaluate(models.batches(), hooks=[hook], steps=1)
    list(est.predict(models.batches(1), hooks=[hook]))
    record(told)


def a_thread_of_a_hook(model_dir, record):
    """After tensorflow#36803: a thread of a hook that waits for the coordinator; a step fails."""
    threads = []

    def after_create_session(session, coord):
        thread = threading.Thread(target=lambda: coord.wait_for_stop() and record("told to stop"))
        thread.start()
        threads.append(thread)
        coord.register_thread(thread)

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        step = tf.train.get_global_step()
        with tf.control_dependencies([tf.assert_less(step, np.int64(2), name="too_far")]):
            return spec._replace(train_op=tf.group(spec.train_op))

    hook = _Hook(after_create_session=after_create_session)
    for steps in (1, 5):
        try:
            models.estimator(model_dir, model_fn).train(models.batches(), hooks=[hook], steps=steps)
        except tf.errors.InvalidArgumentError:
            record("failed")
        record([thread.is_alive() for thread in threads])


def an_error_that_a_hook_handles(model_dir, record):
    """After tensorflow#17951: a hook runs a validation set to its end, and goes on."""

    def before_run(run_context):
        run_context.session.run("restart")
        seen = []
        try:
            while True:
                seen.append(float(run_context.session.run("validated:0")))
        except tf.errors.OutOfRangeError:
            record("validated", seen)

    def model_fn(features, labels, mode):
        data = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0])
        iterator = tf.data.make_initializable_iterator(data)
        tf.group(iterator.initializer, name="restart")
        spec = models.model_fn(features, labels, mode)
        tf.identity(iterator.get_next() * tf.trainable_variables()[0], name="validated")
        return spec

    models.estimator(model_dir, model_fn).train(
        models.batches(), hooks=[_Hook(before_run=before_run)], steps=3
    )


def savers_that_a_model_makes(model_dir, record):
    """After tensorflow#21444: hooks for checkpoints and summaries, with a saver and a writer."""

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        tf.summary.scalar("own", spec.loss)
        saver = tf.train.Saver(max_to_keep=1)
        writer = tf.summary.FileWriter(os.path.join(model_dir, "logs"), tf.get_default_graph())
        hooks = [
            tf.train.CheckpointSaverHook(model_dir, save_steps=2, saver=saver),
            tf.train.SummarySaverHook(
                2, summary_writer=writer, summary_op=tf.summary.merge_all(), output_dir=model_dir
            ),
        ]
        return spec._replace(training_hooks=hooks)

    models.estimator(model_dir, model_fn).train(models.batches(), steps=5)


def a_validation_whose_timer_is_not_told(model_dir, record):
    """After tensorflow#7669: a hook that evaluates by a timer, whose last step nobody updates."""
    state = {"count": 0}
    timer = tf.train.SecondOrStepTimer(every_steps=2)
    est = models.estimator(model_dir, save_checkpoints_steps=2)

    def before_run(run_context):
        state["due"] = timer.should_trigger_for_step(state["count"])

    def after_run(run_context, run_values):
        if state["due"]:
            record(state["count"], est.evaluate(models.batches(), steps=1, name="validation"))
        state["count"] += 1

    hook = _Hook(before_run=before_run, after_run=after_run, begin=timer.reset)
    est.train(models.batches(), hooks=[hook], steps=4)


def operations_of_the_first_graph(model_dir, record):
    """After horovod#183: a hook makes its operation once, and is used in another training."""

    class Broadcast(tf.train.SessionRunHook):
        operation = None

        def begin(self):
            if self.operation is None:
                self.operation = tf.group([v.assign(v) for v in tf.global_variables()], name="all")

        def after_create_session(self, session, coord):
            session.run(self.operation)
            record("broadcast")

    hook = Broadcast()
    est = models.estimator(model_dir)
    for _ in range(2):
        try:
            est.train(models.batches(), hooks=[hook], steps=1)
        except (RuntimeError, ValueError, TypeError) as error:
            record(type(error).__name__, str(error).split("(")[0])


def metadata_of_each_second_step(model_dir, record):
    """After tensorflow#24428: a hook of one's own that asks for a trace, and writes it by a tag."""

    made = []

    def make():
        state = {"runs": 0}

        def begin():
            made.append(state)  # a folder for each, as names of files end with the second
            state["writer"] = tf.summary.FileWriter(f"{model_dir}/traces{len(made)}")

        def before_run(run_context):
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            due = state["runs"] % 2 == 0
            return tf.train.SessionRunArgs(
                tf.train.get_global_step(), options=options if due else None
            )

        def after_run(run_context, run_values):
            stats = run_values.run_metadata.step_stats
            record(state["runs"], run_values.options.trace_level, bool(stats.dev_stats))
            if stats.dev_stats:
                state["writer"].add_run_metadata(
                    run_values.run_metadata, f"run-{run_values.results}"
                )
            state["runs"] += 1

        def end(session):
            state["writer"].close()

        return _Hook(begin=begin, before_run=before_run, after_run=after_run, end=end)

    hook = make()
    est = models.estimator(model_dir)
    est.train(models.batches(), hooks=[hook], steps=3)
    est.evaluate(models.batches(), hooks=[hook], steps=2)


def the_step_that_a_hook_runs_again(model_dir, record):
    """After models#4411: the exact global step, by one more run of the raw session."""
    seen = []

    def after_run(run_context, run_values):
        seen.append(int(run_context.session.run(tf.train.get_global_step())))

    def end(session):
        record(seen, int(session.run(tf.train.get_global_step())))

    hook = _Hook(after_run=after_run, end=end)
    est = models.estimator(model_dir)
    est.train(models.batches(), hooks=[hook], steps=3)
    est.train(models.batches(), hooks=[hook], max_steps=5)


def a_learning_rate_that_a_hook_feeds(model_dir, record):
    """After ResNet_cifar#1: "learning rate is not updated", which a hook feeds."""

    def model_fn(features, labels, mode):
        loss = models.loss_of(features, labels)
        rate = tf.placeholder_with_default(0.5, [], name="rate")
        tf.summary.scalar("rate", rate)
        optimizer = tf.train.MomentumOptimizer(rate, 0.5)
        step = tf.train.get_global_step()
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, step))

    state = {"rate": 0.5}

    def before_run(run_context):
        return tf.train.SessionRunArgs(None, {"rate:0": state["rate"]})

    def after_run(run_context, run_values):
        state["rate"] *= 0.5

    hook = _Hook(before_run=before_run, after_run=after_run)
    est = models.estimator(model_dir, model_fn, save_summary_steps=1)
    est.train(models.batches(), hooks=[hook], steps=4)
    record(est.get_variable_value("w"))
