"""Tracebacks of errors that pass `train`, `evaluate` and `predict`: they end in the user's code."""

import traceback

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import logits_of, make_estimator, train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as estimators

WHERE = "test_finishing.py"


def files(caught):
    return [frame.filename.rpartition("/")[2] for frame in traceback.extract_tb(caught.tb)]


def fails(params=None):
    raise LookupError("mine")


class Fails(tf.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        fails()


def failing_model_fn(features, labels, mode, params):
    tf.matmul(features, tf.zeros([5, 5]))


CALLS = {
    "model_fn": lambda e: make_estimator(e.model_dir, failing_model_fn).train(train_input_fn),
    "input_fn": lambda e: e.train(fails),
    "hook": lambda e: e.train(train_input_fn, hooks=[Fails()], steps=3),
    "evaluate": lambda e: e.evaluate(fails, steps=1),
    "predict": lambda e: next(e.predict(fails)),
}


@pytest.mark.parametrize("where", CALLS)
def test_a_users_error_ends_in_the_users_code(tmp_path, where):
    with pytest.raises((LookupError, ValueError)) as caught:
        CALLS[where](make_estimator(tmp_path))
    assert set(files(caught)) == {WHERE}
    assert len(files(caught)) >= 3  # this function, the call, what failed


def test_so_does_that_of_an_estimator(tmp_path):
    with pytest.raises(LookupError) as caught:
        estimators.Estimator(lambda features: None, tmp_path).train(fails)
    assert files(caught) == [WHERE, WHERE]


def test_an_error_of_a_step_names_the_line(tmp_path):
    def model_fn(features, labels, mode, params):
        loss = tf.reduce_mean(logits_of(features))
        with tf.control_dependencies([tf.Assert(loss > 1e9, ["small"])]):  # the line
            loss = tf.identity(loss)
        step = tf.train.get_global_step()
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = make_estimator(tmp_path, model_fn)

    def fit():
        data = train_input_fn({"batch_size": 16})
        estimator.keras_model().fit(data, steps_per_epoch=1, verbose=0)

    for call in (lambda: estimator.train(train_input_fn, steps=2), fit):
        with pytest.raises(tf.errors.InvalidArgumentError, match="small") as caught:
            call()
        stack = str(caught.value).partition("Original stack trace for 'Assert/Assert':")[2]
        assert WHERE in stack
        assert stack.endswith("# the line")
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        estimator.train(train_input_fn, steps=2)
    assert set(files(caught)) == {WHERE}


def test_a_refusal_of_this_package_ends_at_the_call(tmp_path):
    with pytest.raises(ValueError, match="Must specify steps > 0, given: -1") as caught:
        make_estimator(tmp_path).train(train_input_fn, steps=-1)
    assert files(caught) == [WHERE]


def test_an_accident_in_this_package_stays_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("tpu_estimator_compat.engine.modes.training.Schedule", None)
    with pytest.raises(TypeError, match="NoneType") as caught:
        make_estimator(tmp_path).train(train_input_fn, steps=1)
    assert "training.py" in files(caught)


def test_tensorflows_switch_leaves_all_whole(tmp_path):
    tf.debugging.disable_traceback_filtering()
    try:
        with pytest.raises(LookupError) as caught:
            make_estimator(tmp_path).train(fails)
    finally:
        tf.debugging.enable_traceback_filtering()
    assert "calling.py" in files(caught)
