"""Reports about monitored sessions, which an estimator has below, alone."""

import tensorflow.compat.v1 as tf
from scenarios import models
from support.sides.races import late_zero


def _counting():
    """A step that adds one to the counters, which is late for those who read it."""
    step = tf.train.get_or_create_global_step()
    value = tf.get_variable("value", [], initializer=tf.ones_initializer())
    with tf.control_dependencies([late_zero()]):
        return step, value, tf.group(value.assign_add(2.0), step.assign_add(1))


def sessions_with_and_without_a_directory(model_dir, record):
    """After DeepSpeech#695, sagemaker-debugger#121: training begins anew, or goes on."""
    for folder in (None, model_dir, None, model_dir):
        with tf.Graph().as_default():
            step, value, add = _counting()
            hooks = [tf.train.StopAtStepHook(num_steps=2)]
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=folder, hooks=hooks, save_checkpoint_secs=600, log_step_count_steps=1
            ) as session:
                record("first", session.run([step, value]))
                while not session.should_stop():
                    session.run(add)


def a_stop_that_is_requested(model_dir, record):
    """After tensorflow#14071: request_stop of a session, which only a step function has."""
    with tf.Graph().as_default():
        step, _, add = _counting()

        def function(step_context):
            record("without hooks", int(step_context.session.run(step)))
            step_context.run_with_hooks(add)
            if step_context.session.run(step) == 2:
                step_context.request_stop()

        with tf.train.MonitoredSession(hooks=[models.Recording(record)]) as session:
            models.attempt(record, getattr, session, "request_stop")
            models.attempt(record, session.run_step_fn, lambda: None)
            models.attempt(record, session.run_step_fn, lambda other: None)
            models.attempt(record, session.run_step_fn, function)
            models.attempt(record, session.run_step_fn, function)
            record(session.should_stop())


def the_session_below(model_dir, record):
    """After tensorflow#11971, #23403: runs without hooks, by the raw session."""
    with tf.Graph().as_default():
        step, _, add = _counting()
        hooks = [models.Recording(record)]
        with tf.train.MonitoredSession(hooks=hooks) as session:
            raw = session._tf_sess()
            record(type(raw).__name__, int(raw.run(step)))
            session.run(add)
        with tf.train.SingularMonitoredSession(hooks=hooks, checkpoint_dir=None) as session:
            session.run(add)
            record(int(session.raw_session().run(step)))


def a_saver_of_one_of_two_variables(model_dir, record):
    """After tensorflow#14391, #17969: what is not restored is not initialized after a restore."""
    for more in ({}, {}, {"local_init_op": True}):
        with tf.Graph().as_default():
            step, value, add = _counting()
            other = tf.get_variable("other", [], initializer=tf.ones_initializer())
            scaffold = tf.train.Scaffold(
                saver=tf.train.Saver([value, step]),
                local_init_op=other.initializer if more else None,
                ready_for_local_init_op=tf.constant([], tf.string) if more else None,
            )
            try:
                with tf.train.MonitoredTrainingSession(
                    checkpoint_dir=model_dir, scaffold=scaffold, save_checkpoint_secs=600
                ) as session:
                    session.run(add)
                    record(session.run([value, other]))
            except RuntimeError as error:
                record(str(error).split(":")[0])


def a_hook_that_restores(model_dir, record):
    """After horovod#348: a saver that is made when the graph is finished, and one in begin."""
    models.trained(model_dir, 2)

    class Restores(tf.train.SessionRunHook):
        def __init__(self, early):
            self._early, self._saver = early, None

        def begin(self):
            self._saver = tf.train.Saver() if self._early else None

        def after_create_session(self, session, coord):
            saver = self._saver or tf.train.Saver(max_to_keep=10, sharded=True)
            saver.restore(session, tf.train.latest_checkpoint(model_dir))

    for early in (True, False):
        with tf.Graph().as_default():
            weight = models.weight()
            step = tf.train.get_or_create_global_step()
            try:
                with tf.train.MonitoredTrainingSession(hooks=[Restores(early)]) as session:
                    record("session", session.run([weight, step]))
            except RuntimeError as error:
                record(error)
        try:
            est = models.estimator(f"{model_dir}/{early}")
            est.train(models.batches(), hooks=[Restores(early)], steps=1)
            record(est.get_variable_value("w"), est.get_variable_value("global_step"))
        except RuntimeError as error:
            record(error)


def an_iterator_by_its_handle(model_dir, record):
    """After tensorflow#12859: a feedable iterator in a session that is made a second time."""
    for _ in range(2):
        with tf.Graph().as_default():
            _, _, add = _counting()
            data = tf.data.Dataset.range(5)
            handle = tf.placeholder(tf.string, [])
            types, shapes = tf.data.get_output_types(data), tf.data.get_output_shapes(data)
            iterator = tf.data.Iterator.from_string_handle(handle, types, shapes)
            element = iterator.get_next()
            given = tf.data.make_initializable_iterator(data)
            text = given.string_handle()
            scaffold = tf.train.Scaffold(
                local_init_op=tf.group(tf.local_variables_initializer(), given.initializer)
            )
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=model_dir, scaffold=scaffold
            ) as session:
                told = session.run(text)
                while not session.should_stop():
                    record(int(session.run([element, add], {handle: told})[0]))


def a_worker_that_fails_and_recovers(model_dir, record):
    """After horovod#559, tensorflow#7767: AbortedError in a hook; the session is made again."""
    state = {"runs": 0}

    class Aborts(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            record("created", int(session.run(tf.train.get_global_step(session.graph))))

        def before_run(self, run_context):
            state["runs"] += 1
            if state["runs"] == 3:
                raise tf.errors.AbortedError(None, None, "a preempted worker")

    with tf.Graph().as_default():
        _, _, add = _counting()
        hooks = [Aborts(), tf.train.StopAtStepHook(last_step=4)]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=model_dir, hooks=hooks, save_checkpoint_steps=1
        ) as session:
            while not session.should_stop():
                session.run(add)
    record(state)
