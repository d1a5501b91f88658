"""Iterators that a string names: a hook feeds it, or an operation of the graph chooses it."""

import pytest

import tpu_estimator_compat.v1 as tf


class Handles(tf.train.SessionRunHook):
    """Initialises the iterators, gets their handles, and feeds them in turn to a placeholder."""

    def __init__(self):
        self.placeholder, self.seen = None, []

    def after_create_session(self, session, coord):
        session.run(self.initializers)
        self._values = session.run(self.handles)

    def before_run(self, run_context):
        feeds = {self.placeholder: self._values[len(self.seen) % 2]}
        return tf.train.SessionRunArgs(self.x, feeds if self.placeholder is not None else None)

    def after_run(self, run_context, run_values):
        self.seen.append(int(run_values.results))


def fed(hook):
    hook.placeholder = tf.placeholder(tf.string, [])
    return hook.placeholder


def fed_or_first(hook):
    hook.placeholder = tf.placeholder_with_default(hook.handles[0], [])
    return hook.placeholder


def chosen(hook):
    even = tf.equal(tf.train.get_global_step() % 2, 0)
    return tf.cond(even, lambda: hook.handles[0], lambda: hook.handles[1])


def second(hook):
    return hook.handles[1]


def make_input_fn(hook, handle, initializable):
    def input_fn():
        datasets = [tf.data.Dataset.range(start, start + 3) for start in (0, 100)]
        make = tf.data.make_one_shot_iterator
        if initializable:
            make = tf.data.make_initializable_iterator
        iterators = [make(dataset) for dataset in datasets]
        hook.initializers = [each.initializer for each in iterators] if initializable else []
        hook.handles = [each.string_handle() for each in iterators]
        iterator = tf.data.Iterator.from_string_handle(handle(hook), tf.int64, [])
        hook.x = iterator.get_next()
        return tf.cast(hook.x, tf.float32)

    return input_fn


def model_fn(features, labels, mode):
    w = tf.get_variable("w", [], initializer=tf.ones_initializer())
    train_op = tf.assign_add(tf.train.get_global_step(), 1)
    return tf.estimator.EstimatorSpec(mode, tf.reshape(features, [1]), features * w, train_op)


@pytest.mark.parametrize("initializable", [False, True])
@pytest.mark.parametrize(
    ("handle", "seen"),
    [
        (fed, [0, 100, 1, 101]),
        (fed_or_first, [0, 100, 1, 101]),
        (chosen, [0, 100, 1, 101]),
        (second, [100, 101, 102]),
    ],
)
def test_training(tmp_path, handle, seen, initializable):
    hook = Handles()
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    estimator.train(make_input_fn(hook, handle, initializable), hooks=[hook], steps=len(seen))
    assert hook.seen == seen


def test_evaluation_and_prediction(tmp_path):
    hook = Handles()
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    found = estimator.evaluate(make_input_fn(hook, fed, True), hooks=[hook], steps=4)
    assert (hook.seen, found["loss"]) == ([0, 100, 1, 101], 50.5)
    hook = Handles()
    predictions = estimator.predict(make_input_fn(hook, fed, True), hooks=[hook])
    assert [int(x) for x, _ in zip(predictions, range(4), strict=False)] == [0, 100, 1, 101]
