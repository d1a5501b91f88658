import tensorflow.compat.v1 as tf
from scenarios import models


def request_stop_in_before_run(model_dir, record):
    """request_stop in before_run: the step is still made."""

    class Stops(models.Recording):
        def before_run(self, run_context):
            arguments = super().before_run(run_context)
            if self.runs == 1:
                run_context.request_stop()
            return arguments

    models.estimator(model_dir).train(models.batches(), hooks=[Stops(record)], steps=10)


def _failing(model_dir, record, method, **more):
    hooks = [models.Recording(record, "first"), models.Recording(record, fails_in=method, **more)]
    hooks += [models.Recording(record, "last")]
    models.estimator(model_dir).train(models.batches(), hooks=hooks, steps=3)


def error_in_begin(model_dir, record):
    _failing(model_dir, record, "begin")


def error_in_after_create_session(model_dir, record):
    _failing(model_dir, record, "after_create_session")


def error_in_before_run(model_dir, record):
    _failing(model_dir, record, "before_run")


def error_in_after_run(model_dir, record):
    """No `end` is called, and no checkpoint saved, after an error."""
    _failing(model_dir, record, "after_run")


def error_in_end(model_dir, record):
    _failing(model_dir, record, "end")


def out_of_range_in_a_hook(model_dir, record):
    """OutOfRangeError from a hook ends training as the end of the data does."""
    error = tf.errors.OutOfRangeError(None, None, "enough")
    _failing(model_dir, record, "after_run", error=error)


def stop_iteration_in_a_hook(model_dir, record):
    _failing(model_dir, record, "after_run", error=StopIteration())


def aborted_in_a_hook(model_dir, record):
    """AbortedError: the session is made anew from the last checkpoint, and training goes on."""

    class Aborts(models.Recording):
        aborted = False

        def after_run(self, run_context, run_values):
            super().after_run(run_context, run_values)
            if self.runs == 3 and not self.aborted:
                self.aborted = True
                raise tf.errors.AbortedError(None, None, "gone")

    models.estimator(model_dir, save_checkpoints_steps=2).train(
        models.batches(), hooks=[Aborts(record)], steps=5
    )


def keyboard_interrupt_in_a_hook(model_dir, record):
    """KeyboardInterrupt passes; nothing is saved, no hook ends."""
    try:
        _failing(model_dir, record, "after_run", error=KeyboardInterrupt())
    except KeyboardInterrupt:
        record("interrupted")


def a_hook_fetches_by_name(model_dir, record):
    class Fetches(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs({"nested": ["first:0", ("second:0",)], "op": "third"})

        def after_run(self, run_context, run_values):
            record(run_values.results)
            record(run_context.original_args is not None, run_values.options is not None)

    def model_fn(features, labels, mode):
        tf.identity(features["x"], name="first")
        tf.constant("text", name="second")
        tf.no_op(name="third")
        return models.model_fn(features, labels, mode)

    models.estimator(model_dir, model_fn).train(models.batches(), hooks=[Fetches()], steps=1)


def _scaled(features, labels, mode):
    scale = tf.placeholder_with_default(1.0, [], name="scale")
    loss = models.loss_of(features, labels) * scale
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))


def a_hook_feeds(model_dir, record):
    class Feeds(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(None, feed_dict={"scale:0": 0.5})

    models.estimator(model_dir, _scaled).train(models.batches(), hooks=[Feeds()], steps=2)


def two_hooks_feed_the_same(model_dir, record):
    class Feeds(tf.train.SessionRunHook):
        def begin(self):
            self.tensor = tf.get_default_graph().get_tensor_by_name("scale:0")

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(None, feed_dict={self.tensor: 0.5})

    models.estimator(model_dir, _scaled).train(models.batches(), hooks=[Feeds(), Feeds()], steps=2)


def a_hook_adds_to_the_graph(model_dir, record):
    class Adds(tf.train.SessionRunHook):
        def begin(self):
            record(tf.get_default_graph().finalized)
            self.twice = tf.train.get_global_step() * 2

        def after_create_session(self, session, coord):
            record(session.graph.finalized, session.run(self.twice))
            try:
                tf.constant(1.0)
            except RuntimeError as error:
                record(error)

        def end(self, session):
            record(session.run(self.twice))

    models.estimator(model_dir).train(models.batches(), hooks=[Adds()], steps=2)


def a_listener_of_the_wrong_type(model_dir, record):
    models.estimator(model_dir).train(models.batches(), steps=1, saving_listeners=[object()])


def a_hook_of_the_wrong_type(model_dir, record):
    models.estimator(model_dir).train(models.batches(), steps=1, hooks=[object()])


def hooks_of_the_spec_of_the_wrong_type(model_dir, record):
    def more(spec):
        return {"training_hooks": [object()]}

    models.estimator(model_dir, models.spec_of(more)).train(models.batches(), steps=1)


def a_single_hook(model_dir, record):
    models.estimator(model_dir).train(models.batches(), steps=1, hooks=models.Recording(record))


def the_callers_list_of_hooks_stays(model_dir, record):
    hooks = [models.Recording(lambda *_: None)]
    estimator = models.estimator(model_dir)
    estimator.train(models.batches(), hooks=hooks, steps=1)
    estimator.evaluate(models.batches(), hooks=hooks, steps=1)
    return len(hooks)


def own_saver_hook(model_dir, record):
    saver = tf.train.CheckpointSaverHook(model_dir, save_steps=2)
    models.estimator(model_dir, save_checkpoints_steps=1).train(
        models.batches(), hooks=[saver], steps=4, saving_listeners=[models.Listener(record)]
    )


def a_listener_without_a_saver(model_dir, record):
    est = models.estimator(model_dir, save_checkpoints_steps=None, save_checkpoints_secs=None)
    est.train(models.batches(), steps=2, saving_listeners=[models.Listener(record)])


def summaries_written_by_a_hook(model_dir, record):
    class Writes(tf.train.SessionRunHook):
        def begin(self):
            self.writer = tf.summary.FileWriterCache.get(model_dir)

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(tf.train.get_global_step())

        def after_run(self, run_context, run_values):
            value = tf.Summary.Value(tag="own", simple_value=2.5)
            self.writer.add_summary(tf.Summary(value=[value]), int(run_values.results))

    models.estimator(model_dir).train(models.batches(), hooks=[Writes()], steps=3)


def coordinator_of_the_session(model_dir, record):
    class Stops(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            self.coord = coord

        def after_run(self, run_context, run_values):
            record("run", self.coord.should_stop())
            self.coord.request_stop()

    models.estimator(model_dir).train(models.batches(), hooks=[Stops()], steps=5)


def fetches_without_a_step(model_dir, record):
    """A hook whose session runs the train_op itself makes a step more."""

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)

        class Twice(tf.train.SessionRunHook):
            def after_run(self, run_context, run_values):
                run_context.session.run(spec.train_op)
                record(run_context.session.run(tf.train.get_global_step()))

        return spec._replace(training_hooks=[Twice()])

    models.estimator(model_dir, model_fn).train(models.batches(), steps=4)


def a_hook_reads_the_input(model_dir, record):
    """A fetched feature is that of the step; an extra session.run takes another batch."""

    def model_fn(features, labels, mode):
        tf.identity(features["x"], name="seen")
        return models.model_fn(features, labels, mode)

    hook = models.Fetching(record, "seen:0")
    models.estimator(model_dir, model_fn).train(models.batches(), hooks=[hook], steps=3)


def logging_tensor_hook(model_dir, record):
    hooks = [
        tf.train.LoggingTensorHook(["named"], every_n_iter=2),
        tf.train.LoggingTensorHook({"shown": "named:0"}, at_end=True),
        tf.train.LoggingTensorHook(
            {"x": "named:0"}, every_n_iter=3, formatter=lambda t: f"formatted {t['x']:.3f}"
        ),
    ]
    estimator = models.estimator(model_dir, models.named_loss_model_fn)
    estimator.train(models.batches(), hooks=hooks, steps=5)


def profiler_hook(model_dir, record):
    hook = tf.train.ProfilerHook(save_steps=2, output_dir=model_dir)
    models.estimator(model_dir).train(models.batches(), hooks=[hook], steps=3)


def check_numerics_by_nan_tensor_hook(model_dir, record):
    """NanTensorHook(fail_on_nan_loss=False) warns and stops."""

    def model_fn(features, labels, mode):
        spec = models.model_fn(features, labels, mode)
        nan = tf.log(1.0 - tf.cast(tf.train.get_global_step(), tf.float32), name="nan")
        hook = tf.train.NanTensorHook(nan, fail_on_nan_loss=False)
        return spec._replace(training_hooks=[hook])

    models.estimator(model_dir, model_fn).train(models.batches(), steps=6)


def hooks_that_count_seconds(model_dir, record):
    class Timed(tf.train.SessionRunHook):
        def begin(self):
            self.timer = tf.train.SecondOrStepTimer(every_steps=2)

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(tf.train.get_global_step())

        def after_run(self, run_context, run_values):
            step = int(run_values.results)
            if self.timer.should_trigger_for_step(step):
                _, steps = self.timer.update_last_triggered_step(step)
                record("due", step, steps)

    models.estimator(model_dir).train(models.batches(), hooks=[Timed()], steps=5)
