"""What scenarios share: one weight that learns to double, its inputs, and a hook that records.

With the examples `x = 1, 2, 3, ...` and `y = 2 x`, every number is known in advance.
"""

import numpy as np
import tensorflow.compat.v1 as tf
from support.sides.races import late_zero


def batches(count=None, size=2, features="x"):
    """An input_fn: `count` batches of `size` examples, endless if None."""

    def input_fn():
        x = np.arange(1, 9, dtype=np.float32) / 8.0
        y = 2.0 * x
        dataset = tf.data.Dataset.from_tensor_slices(({features: x}, y)).repeat()
        dataset = dataset.batch(size, drop_remainder=True)
        return dataset if count is None else dataset.take(count)

    return input_fn


def endless(make):
    """An input_fn: the element that `make` gives, again and again."""
    return lambda: tf.data.Dataset.from_tensors(make()).repeat()


def tpu_batches(count=None):
    return lambda params: batches(count, params["batch_size"])()


def weight():
    return tf.get_variable("w", [], initializer=tf.zeros_initializer())


def loss_of(features, labels):
    return tf.reduce_mean(tf.square(weight() * features["x"] - labels))


def descent(loss):
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    return optimizer.minimize(
        loss * (1.0 + late_zero()), global_step=tf.train.get_or_create_global_step()
    )


def mean_error(labels, doubled):
    return {"error": tf.metrics.mean_absolute_error(labels, doubled)}


def model_fn(features, labels, mode):
    doubled = weight() * features["x"]
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"doubled": doubled})
    loss = tf.reduce_mean(tf.square(doubled - labels))
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = mean_error(labels, doubled)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=descent(loss))


def spec_of(train=None, evaluation=None, prediction=None):
    """A model_fn like `model_fn` whose specs get more arguments, made by functions of the loss."""

    def extended(features, labels, mode):
        spec = model_fn(features, labels, mode)
        more = {"train": train, "eval": evaluation, "infer": prediction}[mode]
        return spec._replace(**more(spec)) if more else spec

    return extended


def named_loss_model_fn(features, labels, mode):
    spec = model_fn(features, labels, mode)
    tf.identity(spec.loss, name="named")
    return spec


def estimator(model_dir, fn=model_fn, params=None, warm_start_from=None, **config):
    config = {"tf_random_seed": 1, "save_summary_steps": 2, "log_step_count_steps": 2, **config}
    return tf.estimator.Estimator(
        fn,
        model_dir=model_dir,
        config=tf.estimator.RunConfig(**config),
        params=params,
        warm_start_from=warm_start_from,
    )


def tpu_model_fn(features, labels, mode, params):
    doubled = weight() * features["x"]
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"doubled": doubled})
    loss = tf.reduce_mean(tf.square(doubled - labels))
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = (mean_error, [labels, doubled])
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=descent(loss))


def changed(spec, **more):
    """A TPUEstimatorSpec with other fields; `_replace` of the original loses some."""
    fields = ["mode", "predictions", "loss", "train_op", "eval_metrics", "export_outputs"]
    return tf.estimator.tpu.TPUEstimatorSpec(**{**{f: getattr(spec, f) for f in fields}, **more})


def tpu_config(model_dir, **config):
    config = {"tf_random_seed": 1, "save_summary_steps": 2, "log_step_count_steps": 2, **config}
    config.setdefault("tpu_config", tf.estimator.tpu.TPUConfig(iterations_per_loop=1))
    return tf.estimator.tpu.RunConfig(model_dir=model_dir, **config)


def tpu_estimator(model_dir, fn=tpu_model_fn, params=None, config=None, **more):
    sizes = {"train_batch_size": 2, "eval_batch_size": 2, "predict_batch_size": 2}
    return tf.estimator.tpu.TPUEstimator(
        fn,
        config=config or tpu_config(model_dir),
        params=params,
        use_tpu=False,
        **{**sizes, **more},
    )


def attempt(record, call, *args, **kwargs):
    """Records the type of what a call returns, or its error."""
    try:
        record(type(call(*args, **kwargs)).__name__)
    except Exception as error:
        record(error)


def noted(record, *name):
    """A function for `tf.py_func` that records the arrays that it is called with."""

    def note(*values):
        record(*name, *[np.asarray(v).tolist() for v in values])
        return np.int32(0)

    return note


class Recording(tf.train.SessionRunHook):
    """Records its calls; stops, or raises, in a call of a given name after some steps."""

    def __init__(self, record, name="hook", stop_after=None, fails_in=None, error=None):
        self.record, self.name, self.stop_after = record, name, stop_after
        self.fails_in, self.error = fails_in, error or RuntimeError("raised by a hook")
        self.runs = 0

    def _called(self, method, *more):
        self.record(self.name, method, *more)
        if self.fails_in == method:
            raise self.error

    def begin(self):
        self._called("begin")

    def after_create_session(self, session, coord):
        self._called("after_create_session")

    def before_run(self, run_context):
        self._called("before_run", run_context.stop_requested)
        return tf.train.SessionRunArgs(tf.train.get_global_step())

    def after_run(self, run_context, run_values):
        self.runs += 1
        self._called("after_run", int(run_values.results), run_context.stop_requested)
        if self.runs == self.stop_after:
            run_context.request_stop()

    def end(self, session):
        self._called("end", int(session.run(tf.train.get_global_step())))


class Fetching(tf.train.SessionRunHook):
    def __init__(self, record, fetches, label="run"):
        self._record, self._fetches, self._label = record, fetches, label

    def before_run(self, run_context):
        fetches = self._fetches() if callable(self._fetches) else self._fetches
        return tf.train.SessionRunArgs(fetches)

    def after_run(self, run_context, run_values):
        self._record(self._label, run_values.results)


class Listener(tf.train.CheckpointSaverListener):
    def __init__(self, record, stop_at=None):
        self.record, self.stop_at = record, stop_at

    def begin(self):
        self.record("listener", "begin")

    def before_save(self, session, global_step_value):
        self.record("listener", "before_save", int(global_step_value))

    def after_save(self, session, global_step_value):
        self.record("listener", "after_save", int(global_step_value))
        return self.stop_at is not None and global_step_value >= self.stop_at

    def end(self, session, global_step_value):
        self.record("listener", "end", int(global_step_value))


def trained(model_dir, steps=3, fn=model_fn, params=None, **config):
    est = estimator(model_dir, fn, params, **config)
    est.train(batches(), steps=steps)
    return est
