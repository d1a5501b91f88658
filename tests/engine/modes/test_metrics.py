import keras
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import logits_of, make_estimator, train_input_fn

import tpu_estimator_compat as tpu

from .exact import count_a_step, expected_of


def _model_fn(metric_fn, *names):
    def model_fn(features, labels, mode, params):
        logits = logits_of(features)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        tensors = [labels, logits]
        given = dict(zip(names, tensors, strict=True)) if names else tensors
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=count_a_step(loss), eval_metrics=(metric_fn, given)
        )

    return model_fn


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
        tmp_path, _model_fn(metrics), use_tpu=True, train_distribute=where, eval_distribute=where
    )
    estimator.train(train_input_fn, steps=1)
    first = estimator.evaluate(train_input_fn, steps=4)
    accuracy, _ = expected_of(estimator, 64)
    assert first["accuracy"] == pytest.approx(accuracy, rel=1e-6)
    if "total" in first:
        assert first["total"] == 64
    assert estimator.evaluate(train_input_fn, steps=4) == first


def test_metrics_by_name_and_without_any(tmp_path):
    def by_name(*, y, z):
        return _tf1_metrics(y, z)

    def bare(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        return tpu.TPUEstimatorSpec(mode, loss=loss)

    for use_tpu in (False, True):
        estimator = make_estimator(tmp_path, _model_fn(by_name, "y", "z"), use_tpu=use_tpu)
        assert "accuracy" in estimator.evaluate(train_input_fn, steps=1)
        result = make_estimator(tmp_path, bare, use_tpu=use_tpu).evaluate(train_input_fn, steps=1)
        assert sorted(result) == ["global_step", "loss"]
