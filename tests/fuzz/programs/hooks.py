"""Hooks of a program's calls."""

import numpy as np
import tensorflow.compat.v1 as tf


class Recording(tf.train.SessionRunHook):
    def __init__(self, record, label, fetches, every=1):
        self.record, self.label, self.fetches, self.every = record, label, fetches, every
        self.turn = -1

    def begin(self):
        self.record(self.label, "begin")

    def after_create_session(self, session, coord):
        self.record(self.label, "created", int(session.run(tf.train.get_global_step())))

    def before_run(self, run_context):
        self.turn += 1
        if self.turn % self.every:
            return None
        return tf.train.SessionRunArgs(self.fetches() if callable(self.fetches) else self.fetches)

    def after_run(self, run_context, run_values):
        self.record(self.label, self.turn, run_values.results)

    def end(self, session):
        self.record(self.label, "end", int(session.run(tf.train.get_global_step())))


class InSession(tf.train.SessionRunHook):
    def __init__(self, record, kind):
        self.record, self.kind = record, kind

    def begin(self):
        variable = tf.trainable_variables()[-1] if tf.trainable_variables() else None
        self.read = variable.read_value() if variable is not None else tf.constant(0.0)
        self.step = tf.train.get_global_step()
        if self.kind == "assigns" and variable is not None:
            self.change = tf.assign(variable, variable * 0.5).op

    def after_run(self, run_context, run_values):
        session = run_context.session
        step, value = session.run([self.step, self.read])
        self.record("in session", int(step), np.round(value, 4))
        if self.kind == "assigns" and step == 2:
            session.run(self.change)

    def end(self, session):
        self.record("in session", "end", session.run(self.read).shape)


class Stopping(tf.train.SessionRunHook):
    """Asks to stop after some runs, or raises an error then."""

    def __init__(self, record, after, before=False, error=None):
        self.record, self.after, self.before, self.error = record, after, before, error
        self.runs = 0

    def before_run(self, run_context):
        self.runs += 1
        if self.before and self.runs == self.after:
            run_context.request_stop()

    def after_run(self, run_context, run_values):
        self.record("stopping", self.runs, run_context.stop_requested)
        if self.runs == self.after and self.error:
            raise self.error
        if self.runs == self.after and not self.before:
            run_context.request_stop()

    def end(self, session):
        self.record("stopping", "end")


class Listener(tf.train.CheckpointSaverListener):
    def __init__(self, record, label, stop_at=None, then=None):
        self.record, self.label, self.stop_at, self.then = record, label, stop_at, then

    def begin(self):
        self.record(self.label, "begin")

    def before_save(self, session, global_step_value):
        self.record(self.label, "before_save", int(global_step_value))

    def after_save(self, session, global_step_value):
        self.record(self.label, "after_save", int(global_step_value))
        if self.then:
            self.then()
        return self.stop_at is not None and global_step_value >= self.stop_at

    def end(self, session, global_step_value):
        self.record(self.label, "end", int(global_step_value))


class Looking(tf.train.SessionRunHook):
    """Looks at what has been saved, by a function, after each run."""

    def __init__(self, look):
        self.look = look

    def after_run(self, run_context, run_values):
        self.look()


class Ending(tf.train.SessionRunHook):
    """Its own code ends an iteration, which is an error of that code."""

    def __init__(self, method):
        setattr(self, method, lambda *args: next(iter(())))


class Finals(tf.train.FinalOpsHook):
    def __init__(self, record):
        super().__init__(final_ops=None)
        self.record = record

    def begin(self):
        self._final_ops = {"step": tf.train.get_global_step(), "twice": tf.constant(2.0) * 2.0}

    def end(self, session):
        super().end(session)
        self.record("final", self.final_ops_values)


class OwnSummary(tf.train.SummarySaverHook):
    def begin(self):
        tensor = tf.get_default_graph().get_tensor_by_name("the_loss:0")
        self._summary_op = tf.summary.scalar("own", tensor * 2.0, collections=[])
        super().begin()


def of_training(choices, record, model_dir):
    found = []
    for function in FUNCTIONS:
        found += function(choices, record, model_dir)
    return found[::-1] if choices["hook_order"] == "reversed" else found


def _fetching(choices, record, model_dir):
    kind = choices["hook_fetch"]
    if kind == "none":
        return []
    fetches = ["the_loss:0"]
    if kind == "several":
        fetches = {"loss": "the_loss:0", "more": ["prediction:0", ("the_mean:0",)]}
    if kind == "input":
        fetches = ["IteratorGetNext:0", "prediction:0"]
    if kind == "objects":
        return [Recording(record, "fetching", _objects)]
    return [Recording(record, "fetching", fetches, 3 if kind == "third" else 1)]


def _objects():
    graph = tf.get_default_graph()
    return [graph.get_tensor_by_name("the_loss:0"), graph.get_operation_by_name("the_loss")]


def _in_session(choices, record, model_dir):
    return [] if choices["hook_session"] == "no" else [InSession(record, choices["hook_session"])]


def _logging(choices, record, model_dir):
    kind, tensors = choices["hook_logging"], {"l": "the_loss:0", "p": "the_mean:0"}
    if kind == "none":
        return []
    if kind == "two":
        return [tf.train.LoggingTensorHook(tensors, every_n_iter=2)]
    if kind == "at_end":
        return [tf.train.LoggingTensorHook(["the_loss:0"], every_n_iter=3, at_end=True)]
    if kind == "seconds":
        return [tf.train.LoggingTensorHook(["the_loss:0"], every_n_secs=1000)]

    def formatter(values):
        return "formatted: " + ", ".join(f"{key} {np.sum(v):.3f}" for key, v in values.items())

    return [tf.train.LoggingTensorHook(tensors, every_n_iter=1, formatter=formatter)]


def _saver(choices, record, model_dir):
    kind = choices["hook_saver"]
    if kind == "none":
        return []
    listeners = [Listener(record, "listener of a hook")] if kind == "with_listener" else None
    return [tf.train.CheckpointSaverHook(model_dir, save_steps=2, listeners=listeners)]


def _summary(choices, record, model_dir):
    kind, folder = choices["hook_summary"], f"{model_dir}/own"
    if kind == "none":
        return []
    if kind == "scaffold":
        scaffold = tf.train.Scaffold()
        return [tf.train.SummarySaverHook(2, output_dir=folder, scaffold=scaffold)]
    return [OwnSummary(save_steps=2, output_dir=folder, summary_op=tf.no_op)]


def _stopping(choices, record, model_dir):
    kind = choices["hook_stop"]
    if kind == "none":
        return []
    if kind == "num_steps":
        return [tf.train.StopAtStepHook(num_steps=2)]
    if kind == "last_step":
        return [tf.train.StopAtStepHook(last_step=3)]
    return [Stopping(record, 2, before=kind == "in_before")]


def _feeding(choices, record, model_dir):
    turns = iter(range(1000))
    if choices["hook_feed"] == "yes":
        return [tf.train.FeedFnHook(lambda: {"fed_rate:0": 0.02 * next(turns)})]
    if choices["hook_feed"] == "args":
        return [FeedingOnce()]
    return []


class FeedingOnce(tf.train.SessionRunHook):
    runs = 0

    def before_run(self, run_context):
        self.runs += 1
        if self.runs != 2:
            return None
        return tf.train.SessionRunArgs({}, {"fed_rate:0": np.float32(0.5)})


def _final(choices, record, model_dir):
    return [Finals(record)] if choices["hook_final"] == "yes" else []


def _counting(choices, record, model_dir):
    if choices["hook_counter"] == "no":
        return []
    return [tf.train.StepCounterHook(every_n_steps=2, output_dir=f"{model_dir}/counted")]


def _nan(choices, record, model_dir):
    if choices["hook_nan"] == "no":
        return []
    return [tf.train.NanTensorHook("the_loss:0", fail_on_nan_loss=choices["hook_nan"] == "fails")]


def _raising(choices, record, model_dir):
    kind = choices["hook_raise"]
    if kind in ("none", "stop_saving"):
        return []
    if kind in ("stop_begin", "stop_end"):
        return [Ending(kind.removeprefix("stop_"))]
    errors = {
        "range": tf.errors.OutOfRangeError(None, None, "raised by a hook"),
        "runtime": RuntimeError("raised by a hook"),
        "stop": StopIteration("raised by a hook"),
    }
    return [Stopping(record, 2, error=errors[kind])]


FUNCTIONS = (
    _fetching,
    _in_session,
    _logging,
    _saver,
    _summary,
    _stopping,
    _feeding,
    _final,
    _counting,
    _nan,
    _raising,
)
