"""Evaluation: metrics of every kind, exact means, replicas, and events."""

import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    examples,
    finite_input_fn,
    logits_of,
    make_estimator,
    make_model_fn,
    train_input_fn,
)

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as tf_estimator


def _step(loss):
    """Trains nothing; several replicas have to exchange something all the same."""
    with tf.control_dependencies([tf.tpu.cross_replica_sum(loss)]):
        return tf.assign_add(tf.train.get_global_step(), 1)


def _model_fn(eval_metrics):
    """A model_fn whose metrics see labels and logits."""

    def model_fn(features, labels, mode, params):
        logits = logits_of(features)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=_step(loss), eval_metrics=(eval_metrics, [labels, logits])
        )

    return model_fn


def _expected(estimator, count):
    """Accuracy and losses of the first `count` examples of the endless input, by NumPy."""
    x, y = (np.resize(a, (count, *a.shape[1:])) for a in examples(64))
    hidden = np.maximum(x @ estimator.get_variable_value("hidden"), 0)
    logits = hidden @ estimator.get_variable_value("output")
    log_sum = np.log(np.exp(logits).sum(axis=1))
    losses = log_sum - logits[np.arange(count), y]
    return (logits.argmax(axis=1) == y).mean(), losses


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
    accuracy, losses = _expected(estimator, 48 if use_tpu else 48 * replicas)
    assert result["accuracy"] == pytest.approx(accuracy, rel=1e-6)
    assert result["loss"] == pytest.approx(losses.mean(), rel=1e-5)
    assert result["global_step"] == 10
    assert isinstance(result["loss"], np.float32)
    assert isinstance(result["global_step"], np.int64)


def test_runs_to_the_end_of_the_data_with_a_partial_batch(tmp_path):
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, steps=5)
    result = estimator.evaluate(finite_input_fn(40))
    accuracy, losses = _expected(estimator, 40)
    assert result["accuracy"] == pytest.approx(accuracy, rel=1e-6)
    # The mean over steps, not over examples: the last batch has 8 of 16.
    per_step = [losses[:16].mean(), losses[16:32].mean(), losses[32:].mean()]
    assert result["loss"] == pytest.approx(np.mean(per_step), rel=1e-5)


def test_fewer_steps_than_data(tmp_path):
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, steps=5)
    assert estimator.evaluate(finite_input_fn(64), steps=1)["loss"] == pytest.approx(
        _expected(estimator, 16)[1].mean(), rel=1e-5
    )


def _tf1_metrics(labels, logits):
    classes = tf.argmax(logits, axis=-1)
    return {
        "accuracy": tf.metrics.accuracy(labels, classes),
        "auc": tf.metrics.auc(tf.cast(labels, tf.bool), tf.nn.softmax(logits)[:, 1]),
        "f": tf.metrics.precision(labels, classes),
        "mean_per_class": tf.metrics.mean_per_class_accuracy(labels, classes, 3),
        "total": _counted(labels),
    }


def _counted(labels):
    """A metric by hand: a local variable and its update."""
    total = tf.get_local_variable("count", [], tf.int64, initializer=tf.zeros_initializer())
    return total.read_value() * 1, tf.assign_add(total, tf.shape(labels, out_type=tf.int64)[0])


def _keras_metrics(labels, logits):
    accuracy = keras.metrics.SparseCategoricalAccuracy(name="accuracy")
    accuracy.update_state(labels, logits)
    mean = keras.metrics.Mean()
    mean.update_state(logits)
    return {"accuracy": accuracy, "mean": mean}


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("metrics", [_tf1_metrics, _keras_metrics])
def test_metrics_of_any_kind(tmp_path, strategy, metrics, replicas):
    where = strategy(replicas)
    estimator = make_estimator(
        tmp_path,
        _model_fn(metrics),
        use_tpu=True,
        train_distribute=where,
        eval_distribute=where,
    )
    estimator.train(train_input_fn, steps=1)
    first = estimator.evaluate(train_input_fn, steps=4)
    accuracy, _ = _expected(estimator, 64)
    assert first["accuracy"] == pytest.approx(accuracy, rel=1e-6)
    if "total" in first:
        assert first["total"] == 64
    assert estimator.evaluate(train_input_fn, steps=4) == first


def test_metrics_by_name_and_without_any(tmp_path):
    def by_name(*, y, z):
        return _tf1_metrics(y, z)

    def model_fn(features, labels, mode, params):
        logits = logits_of(features)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(by_name, {"y": labels, "z": logits})
        )

    def bare(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        return tpu.TPUEstimatorSpec(mode, loss=loss)

    for use_tpu in (False, True):
        estimator = make_estimator(tmp_path, model_fn, use_tpu=use_tpu)
        assert "accuracy" in estimator.evaluate(train_input_fn, steps=1)
        result = make_estimator(tmp_path, bare, use_tpu=use_tpu).evaluate(train_input_fn, steps=1)
        assert sorted(result) == ["global_step", "loss"]


def test_eval_on_tpu_false_takes_the_whole_batch_and_a_plain_spec(tmp_path, strategy):
    seen = {}

    def model_fn(features, labels, mode, params):
        seen[mode] = params["batch_size"], params["use_tpu"], features.shape[0]
        logits = logits_of(features)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == tpu.ModeKeys.EVAL:
            metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, -1))}
            return tf_estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=_step(loss))

    estimator = make_estimator(
        tmp_path, model_fn, use_tpu=True, eval_on_tpu=False, train_distribute=strategy(2)
    )
    estimator.train(train_input_fn, steps=1)
    result = estimator.evaluate(train_input_fn, steps=4)
    assert result["accuracy"] == pytest.approx(_expected(estimator, 64)[0], rel=1e-6)
    assert seen[tpu.ModeKeys.TRAIN] == (8, True, 8)
    assert seen[tpu.ModeKeys.EVAL] == (16, False, 16)


def test_checkpoint_path_chooses_what_is_evaluated(tmp_path):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=5)
    estimator.train(train_input_fn, steps=10)
    path = str(tmp_path / "model.ckpt-5")
    old = estimator.evaluate(train_input_fn, steps=2, checkpoint_path=path)
    new = estimator.evaluate(train_input_fn, steps=2)
    assert (old["global_step"], new["global_step"]) == (5, 10)
    assert old["loss"] > new["loss"]


def test_without_a_checkpoint_first_values_are_evaluated(tmp_path):
    result = make_estimator(tmp_path).evaluate(train_input_fn, steps=1)
    assert result["global_step"] == 0
    assert result["loss"] > 0


def test_results_are_events_under_the_evaluations_name(tmp_path):
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, steps=3)
    result = estimator.evaluate(train_input_fn, steps=2, name="dev")
    [events] = (tmp_path / "eval_dev").iterdir()
    found = {
        value.tag: (event.step, value.simple_value)
        for event in tf.train.summary_iterator(str(events))
        for value in event.summary.value
    }
    assert found["loss"] == (3, pytest.approx(result["loss"]))
    assert found["accuracy"] == (3, pytest.approx(result["accuracy"]))
    assert "checkpoint_path" in found
    assert estimator.eval_dir("dev") == str(tmp_path / "eval_dev")
    assert estimator.eval_dir() == str(tmp_path / "eval")


@pytest.mark.parametrize("quoted", ['"loss"', "`global_step`"])  # as the original quotes them
def test_reserved_metric_names_are_refused(tmp_path, quoted):
    name = quoted.strip('"`')

    def metrics(labels, logits):
        return {name: tf.metrics.mean(logits)}

    estimator = make_estimator(tmp_path, _model_fn(metrics))
    with pytest.raises(ValueError, match=f"Metric with name {quoted} is not allowed"):
        estimator.evaluate(train_input_fn, steps=1)


def test_evaluation_does_not_touch_the_model(tmp_path):
    def model_fn(features, labels, mode, params):
        spec = make_model_fn()(features, labels, mode, params)
        tf.assign(tf.trainable_variables()[0], tf.zeros([4, 8]))  # nobody fetches it
        return spec

    estimator = make_estimator(tmp_path, model_fn)
    estimator.train(train_input_fn, steps=5)
    before = estimator.get_variable_value("hidden")
    assert estimator.evaluate(train_input_fn, steps=2) == estimator.evaluate(
        train_input_fn, steps=2
    )
    np.testing.assert_array_equal(before, estimator.get_variable_value("hidden"))
