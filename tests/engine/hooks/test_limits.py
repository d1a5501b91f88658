"""Trainings that do not get to their last step: by a global step that stays, or data that ends."""

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import finite_input_fn, make_estimator, make_model_fn, train_input_fn

import tpu_estimator_compat as tpu


@pytest.mark.parametrize("every", [None, 1])
def test_a_global_step_that_stays_is_told_once_more(tmp_path, caplog, every):
    """Also where no speed is logged, when TensorFlow's hook is not there to tell."""

    class Stop(tf.train.SessionRunHook):
        runs = 0

        def after_run(self, run_context, run_values):
            self.runs += 1
            if self.runs == 5:
                run_context.request_stop()

    model_fn = model_with(lambda step: [])
    estimator = make_estimator(tmp_path, model_fn, log_step_count_steps=every)
    estimator.train(train_input_fn, max_steps=2, hooks=[Stop()])
    told = caplog.text.count("It seems that global step (tf.train.get_global_step) has not been")
    assert told == (1 if every is None else 4)


def model_with(raised):
    """A model_fn whose train_op raises the global step as `raised(step)` does, or not at all."""

    def train_op(loss, params):
        optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
        return tf.group(optimizer.minimize(loss), *raised(tf.train.get_global_step()))

    return make_model_fn(train_op)


@pytest.mark.parametrize("use_tpu", [False, True])
@pytest.mark.parametrize("argument", ["steps", "max_steps"])
def test_a_training_without_an_end_is_an_error(tmp_path, use_tpu, argument):
    # Without TensorFlow's hook, whose warning comes five times in a process.
    how = {"use_tpu": use_tpu, "loop": 7, "log_step_count_steps": None}
    estimator = make_estimator(tmp_path, model_with(lambda step: []), **how)
    with pytest.raises(RuntimeError, match=rf"still is 0: with {argument}=40, training would ne"):
        estimator.train(train_input_fn, **{argument: 40})


def every_300(step):
    """Adds up gradients: one step of 300 raises the global step."""
    made = tf.get_variable("made", [], tf.int64, tf.zeros_initializer(), trainable=False)
    with tf.control_dependencies([made.assign_add(1)]):
        return [step.assign(made.read_value() // 300)]


def test_a_global_step_that_moves_rarely_is_none(tmp_path):
    estimator = make_estimator(tmp_path, model_with(every_300), log_step_count_steps=None)
    estimator.train(train_input_fn, max_steps=3)
    assert estimator.get_variable_value("made") == 900


def ends_told(caplog):
    return [line for line in caplog.messages if "The data ended at" in line]


def every_4(estimator):
    return [tf.train.LoggingTensorHook(["sum"], every_n_iter=4)]


@pytest.mark.parametrize("hooks", [lambda estimator: [], every_4])
@pytest.mark.parametrize("batches", [5, 8, 9])
def test_data_that_ends_early_is_told_once(tmp_path, caplog, hooks, batches):
    def model_fn(features, labels, mode, params):
        tf.reduce_sum(features, name="sum")
        return model_with(lambda step: [step.assign_add(1)])(features, labels, mode, params)

    estimator = make_estimator(tmp_path, model_fn)
    estimator.train(train_input_fn, steps=3)
    assert not ends_told(caplog)
    estimator.train(finite_input_fn(16 * batches), steps=10, hooks=hooks(estimator))
    [told] = ends_told(caplog)
    assert f"at step {3 + batches} of 13 (steps=10)" in told
    assert estimator.get_variable_value("global_step") == 3 + batches
    estimator.train(finite_input_fn(16), max_steps=50)
    assert f"at step {4 + batches} of 50 (max_steps=50)" in ends_told(caplog)[1]


def test_other_ends_are_not_told(tmp_path, caplog):
    class Stop(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            run_context.request_stop()

    estimator = make_estimator(tmp_path)
    estimator.train(finite_input_fn(16 * 5), steps=5)
    estimator.train(finite_input_fn(16 * 5))
    estimator.train(finite_input_fn(16 * 5), steps=10, hooks=[Stop()])
    estimator.train(finite_input_fn(16), max_steps=float("inf"))
    estimator.evaluate(finite_input_fn(16), steps=float("inf"))
    assert estimator.get_variable_value("global_step") == 12
    assert not ends_told(caplog)
