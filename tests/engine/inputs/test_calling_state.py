"""Input that is made of variables, under the rules of TPU execution: nothing is read ahead."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as estimators
from tpu_estimator_compat.engine.inputs.calling import warn_if_endless
from tpu_estimator_compat.estimator import Estimator, EstimatorSpec

from .calls import called


def model_fn(features, labels, mode, params):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((weight - features) ** 2) / 2
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def position(params):
    made = tf.get_variable("position", [], initializer=tf.zeros_initializer(), trainable=False)
    return tf.fill([params["batch_size"]], tf.assign_add(made, 1.0) - 1.0)


def the_step(params):
    return tf.fill([params["batch_size"]], tf.cast(tf.train.get_global_step(), tf.float32))


@pytest.mark.parametrize("input_fn", [position, the_step])
def test_each_step_has_its_own(tmp_path, input_fn):
    """In loops of two steps, in two trainings: the features are 0 to 5."""
    config = tpu.RunConfig(model_dir=str(tmp_path), tpu_config=tpu.TPUConfig(2))
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=4)
    for steps in (4, 6):
        estimator.train(input_fn, max_steps=steps)
    weight = 0.0
    for features in range(6):
        weight += 0.1 * (features - weight)
    assert estimator.get_variable_value("weight") == pytest.approx(weight, rel=1e-5)
    if input_fn is position:
        assert estimator.get_variable_value("position") == 6


STEPS = 5


def dataset():
    return tf.data.Dataset.from_tensor_slices([[1.0]] * STEPS).batch(1)


def tensors():
    return tf.data.make_one_shot_iterator(dataset()).get_next()


def queue():
    value = tf.train.input_producer([1.0] * STEPS, num_epochs=1, shuffle=False).dequeue()
    return tf.train.batch([value], 1)


def counting_model_fn(features, mode, params):
    made = {"trainable": False, "initializer": tf.zeros_initializer()}
    first, second = (tf.get_variable(name, [], **made) for name in ("first", "second"))
    if params["branch"]:
        count = tf.cond(first >= 0, lambda: second.assign_add(1), lambda: second + 0)
    else:
        count = second.assign_add(1)
    train_op = tf.group(first.assign_add(1), count, tf.train.get_global_step().assign_add(1))
    return EstimatorSpec(mode, loss=tf.reduce_sum(features), train_op=train_op)


@pytest.mark.parametrize("branch", [False, True])
@pytest.mark.parametrize("input_fn", [dataset, tensors, queue])
def test_counters_stand_at_the_number_of_elements(tmp_path, input_fn, branch):
    estimator = Estimator(counting_model_fn, str(tmp_path), params={"branch": branch})
    estimator.train(input_fn)
    names = ("first", "second", "global_step")
    assert [estimator.get_variable_value(name) for name in names] == [STEPS] * 3


def fed_model_fn(features, labels, mode):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    predictions = {"y": features * weight}
    if mode == estimators.ModeKeys.PREDICT:
        return estimators.EstimatorSpec(mode, predictions)
    loss = tf.reduce_mean((predictions["y"] - labels) ** 2)
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, step)
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, predictions["y"])}
    return estimators.EstimatorSpec(mode, predictions, loss, train_op, metrics)


class Feeding(tf.train.SessionRunHook):
    """Feeds other points of `y = 3 x` in every run."""

    def __init__(self):
        self.runs = 0

    def input_fn(self):
        self.x = tf.placeholder(tf.float32, [None], name="x")
        self.y = tf.placeholder(tf.float32, [None])
        return self.x, self.y

    def before_run(self, run_context):
        self.runs += 1
        x = np.arange(self.runs, self.runs + 3, dtype=np.float32)
        return tf.train.SessionRunArgs(None, feed_dict={self.x: x, self.y: 3 * x})


def test_a_hook_feeds_all_modes(tmp_path):
    """The numbers are those of the original on TensorFlow 2.15."""
    estimator = estimators.Estimator(fed_model_fn, str(tmp_path))
    hook = Feeding()
    estimator.train(hook.input_fn, hooks=[hook], steps=4)
    assert hook.runs == 4
    assert estimator.get_variable_value("weight") == pytest.approx(2.2881258, rel=1e-6)
    hook = Feeding()
    results = estimator.evaluate(hook.input_fn, hooks=[hook], steps=3)
    assert results["loss"] == pytest.approx(5.236571, rel=1e-5)
    assert results["mae"] == pytest.approx(2.1356227, rel=1e-5)
    hook = Feeding()
    found = estimator.predict(lambda: hook.input_fn()[0], hooks=[hook])
    values = [next(found)["y"] for _ in range(8)]
    found.close()
    expected = 2.2881258 * np.array([1, 2, 3, 2, 3, 4, 3, 4])
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_names_are_fed_too_and_what_is_made_of_placeholders(tmp_path):
    def input_fn():
        halves = tf.placeholder(tf.float32, [2], name="halves")
        return halves * 2.0, halves * 6.0

    hook = tf.train.FeedFnHook(lambda: {"halves:0": np.array([1.0, 2.0], np.float32)})
    estimator = estimators.Estimator(fed_model_fn, str(tmp_path))
    estimator.train(input_fn, hooks=[hook], steps=60)
    assert estimator.get_variable_value("weight") == pytest.approx(3.0, abs=1e-3)


def test_without_a_feed_it_says_what_is_missing(tmp_path):
    estimator = estimators.Estimator(fed_model_fn, str(tmp_path))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must feed a value for placeholder"):
        estimator.train(Feeding().input_fn, steps=1)


def test_what_a_queue_runner_raises_is_told(tmp_path):
    def input_fn():
        text = tf.train.input_producer(["1", "x"], num_epochs=1, shuffle=False).dequeue()
        return tf.train.batch([tf.string_to_number(text)], 2)

    estimator = Estimator(counting_model_fn, str(tmp_path), params={"branch": False})
    with pytest.raises(tf.errors.InvalidArgumentError, match="could not correctly convert string"):
        estimator.train(input_fn)


class RunnerOfNothing:
    """Tells the original that the data end."""

    def create_threads(self, sess, coord=None, daemon=False, start=False):
        return []


def test_runners_without_a_queue_are_no_obstacle(caplog):
    def call():
        tf.add_to_collection(tf.GraphKeys.QUEUE_RUNNERS, RunnerOfNothing())
        return tf.constant(3.0)

    found = called(call)
    assert float(next(iter(found.dataset()))) == 3
    warn_if_endless(found)
    assert not caplog.records
    warn_if_endless(called(lambda: tf.constant(3.0)))
    assert "predict yields forever" in caplog.text
