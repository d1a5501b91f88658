import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    finite_input_fn,
    logits_of,
    make_estimator,
    make_model_fn,
    train_input_fn,
)

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as tf_estimator

from .exact import count_a_step, expected_of


@pytest.mark.parametrize(
    ("use_tpu", "replicas"), [(False, 1), (True, 1), (True, 2), (True, 4), (False, 2)]
)
def test_metrics_and_loss_are_exact(tmp_path, strategy, use_tpu, replicas):
    where = strategy(replicas) if use_tpu or replicas > 1 else None
    estimator = make_estimator(
        tmp_path, use_tpu=use_tpu, train_distribute=where, eval_distribute=where
    )
    if use_tpu or replicas == 1:
        estimator.train(train_input_fn, steps=10)
    else:
        make_estimator(tmp_path).train(train_input_fn, steps=10)
    result = estimator.evaluate(train_input_fn, steps=3)
    # Off TPU every replica of a strategy takes a whole batch, as the original's did.
    accuracy, losses = expected_of(estimator, 48 if use_tpu else 48 * replicas)
    assert result["accuracy"] == pytest.approx(accuracy, rel=1e-6)
    assert result["loss"] == pytest.approx(losses.mean(), rel=1e-5)
    assert result["global_step"] == 10
    assert isinstance(result["loss"], np.float32)
    assert isinstance(result["global_step"], np.int64)


def test_eval_on_tpu_false_takes_whole_batches_and_plain_specs(tmp_path, strategy):
    seen = {}

    def model_fn(features, labels, mode, params):
        seen[mode] = params["batch_size"], params["use_tpu"], features.shape[0]
        logits = logits_of(features)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == tpu.ModeKeys.EVAL:
            metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, -1))}
            return tf_estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=count_a_step(loss))

    estimator = make_estimator(
        tmp_path, model_fn, use_tpu=True, eval_on_tpu=False, train_distribute=strategy(2)
    )
    estimator.train(train_input_fn, steps=1)
    result = estimator.evaluate(train_input_fn, steps=4)
    assert result["accuracy"] == pytest.approx(expected_of(estimator, 64)[0], rel=1e-6)
    assert seen[tpu.ModeKeys.TRAIN] == (8, True, 8)
    assert seen[tpu.ModeKeys.EVAL] == (16, False, 16)


def every_4():
    return [tf.train.LoggingTensorHook(["first_weights"], every_n_iter=4)]


@pytest.mark.parametrize("hooks", [list, every_4])
@pytest.mark.parametrize(("steps", "told"), [(9, True), (7, False), (5, False)])
def test_data_that_ends_before_the_steps_is_told(tmp_path, caplog, hooks, steps, told):
    def model_fn(features, labels, mode, params):
        spec = make_model_fn()(features, labels, mode, params)
        tf.identity(tf.trainable_variables()[0], name="first_weights")
        return spec

    estimator = make_estimator(tmp_path, model_fn, eval_batch_size=16)
    estimator.evaluate(finite_input_fn(16 * 7), steps=steps, hooks=hooks())
    found = [m for m in caplog.messages if "The data ended at step 7 of 9 of the evaluation" in m]
    assert len(found) == told


@pytest.mark.parametrize("steps", [None, 2])
def test_a_metric_value_that_reads_past_the_end_is_told(tmp_path, caplog, steps):
    def model_fn(features, labels, mode, params):
        spec = make_model_fn()(features, labels, mode, params)
        if mode != tpu.ModeKeys.EVAL:
            return spec
        return spec._replace(eval_metrics=(lambda x: {"first": (x[0, 0], tf.no_op())}, [features]))

    estimator = make_estimator(tmp_path, model_fn)
    estimator.train(train_input_fn, steps=1)
    with pytest.raises(tf.errors.OutOfRangeError, match=r"Graph execution error:(?s:.*)End of seq"):
        estimator.evaluate(finite_input_fn(32), steps)
    assert "raised by the code in FinalOpsHook" in caplog.text


def test_lines_before_a_step_that_fails_are_logged(tmp_path, caplog):
    def rows():
        yield from np.ones([3 * 16, 4], np.float32)
        raise ValueError("no row")

    def input_fn(params):
        made = tf.data.Dataset.from_generator(rows, tf.float32, [4])
        return made.map(lambda x: (x, 0)).batch(16, drop_remainder=True)

    caplog.set_level("INFO", "tensorflow")
    with pytest.raises(tf.errors.InvalidArgumentError, match="no row"):
        make_estimator(tmp_path, eval_batch_size=16).evaluate(input_fn, steps=4)
    found = [line for line in caplog.messages if line.startswith("Evaluation [")]
    assert found == [f"Evaluation [{step}/4]" for step in (1, 2, 3)]
