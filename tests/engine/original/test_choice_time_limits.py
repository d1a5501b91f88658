"""A run that takes longer than a session's config, or its options, allow: sessions see to it."""

import time

import pytest

import tpu_estimator_compat.v1 as tf

LATE = "Timed out waiting for notification"


def queue(x):
    return x + tf.FIFOQueue(1, [tf.float32], [[]]).dequeue()


def slow_python(x):
    return tf.py_func(lambda value: time.sleep(0.6) or value, [x], tf.float32)


def slow_data():
    def rows():
        yield 1.0
        time.sleep(0.6)
        yield 2.0

    return tf.data.Dataset.from_generator(rows, tf.float32, []).batch(1)


def data():
    return tf.data.Dataset.from_tensors(tf.ones([1])).repeat(8)


class Options(tf.train.SessionRunHook):
    """Sets a limit for each run; with a queue that nobody fills, waits for that."""

    def __init__(self, fetch=lambda: []):
        self._fetch = fetch

    def begin(self):
        self._fetches = self._fetch()

    def before_run(self, run_context):
        options = tf.RunOptions(timeout_in_ms=300)
        return tf.train.SessionRunArgs(self._fetches, options=options)


def make_estimator(model_dir, inserted=lambda x: x, milliseconds=0, **settings):
    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        x = inserted(tf.reduce_mean(features))
        train_op = tf.group(tf.assign_add(tf.train.get_global_step(), 1), x)
        predictions = tf.reshape(x, [1])
        return tf.estimator.EstimatorSpec(mode, predictions, x * w, train_op)

    session_config = tf.ConfigProto(operation_timeout_in_ms=milliseconds)
    config = tf.estimator.RunConfig(str(model_dir), session_config=session_config, **settings)
    return tf.estimator.Estimator(model_fn, config=config)


@pytest.mark.parametrize(
    ("inserted", "input_fn", "call"),
    [
        (queue, data, "train"),
        (queue, data, "evaluate"),
        (queue, data, "predict"),
        (slow_python, data, "train"),
        (lambda x: x, slow_data, "train"),
    ],
)
def test_steps(tmp_path, inserted, input_fn, call):
    estimator = make_estimator(tmp_path, inserted, milliseconds=300)
    with pytest.raises(tf.errors.DeadlineExceededError, match=LATE):
        list(getattr(estimator, call)(input_fn))


@pytest.mark.parametrize(
    ("inserted", "hook"),
    [(queue, Options()), (lambda x: x, Options(lambda: queue(0.0)))],
    ids=["a step", "what the hook fetches"],
)
def test_limits_of_a_hook(tmp_path, inserted, hook):
    with pytest.raises(tf.errors.DeadlineExceededError, match=LATE):
        make_estimator(tmp_path, inserted).train(data, steps=2, hooks=[hook])


def test_quick_steps_are_left_alone(tmp_path):
    estimator = make_estimator(tmp_path, milliseconds=60_000)
    estimator.train(data, hooks=[Options()], steps=6)
    assert estimator.get_variable_value("global_step") == 6
    assert len(list(estimator.predict(data))) == 8


def test_steps_say_that_they_obey_no_limit(tmp_path, caplog):
    for runtime in ("tensorflow", "auto"):
        caplog.clear()
        make_estimator(tmp_path, milliseconds=60_000, runtime=runtime).train(data, steps=1)
        said = [x for x in caplog.messages if "operation_timeout_in_ms" in x and "no effect" in x]
        assert len(said) == (runtime == "tensorflow")
