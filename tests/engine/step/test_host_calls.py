"""Placeholders of the host's share: their shapes, and where input is broadcast."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    adam,
    examples,
    finite_input_fn,
    logits_of,
    make_estimator,
    train_input_fn,
)

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.step.host_calls import HostPlaceholders

from .host_call_models import Recorder, model_with


def test_placeholders_have_the_shapes_of_all_replicas(graph):
    host = HostPlaceholders(graph, 3, same_on_all_replicas=False)
    assert host.over_replicas(tf.zeros([4, 5])).shape == [12, 5]
    assert host.over_replicas(tf.placeholder(tf.float32, [None, 5])).shape.as_list() == [None, 5]
    assert host.over_replicas(tf.placeholder(tf.float32)).shape.rank is None
    with pytest.raises(RuntimeError, match="should preserve batch size dimension, but got scalar"):
        host.over_replicas(tf.constant(1.0))
    same = HostPlaceholders(graph, 3, same_on_all_replicas=True)
    assert same.over_replicas(tf.zeros([4, 5])).shape == [4, 5]
    assert same.over_replicas(tf.constant(1.0)).shape == []
    assert len(host.made) == 3
    assert len(same.made) == 2


def test_scalars_are_refused_in_the_words_of_the_original(tmp_path):
    def host_call(step, loss):
        return (lambda loss: loss), [tf.reduce_mean(loss)]

    estimator = make_estimator(tmp_path, model_with(host_call), use_tpu=True)
    with pytest.raises(RuntimeError, match="should preserve batch size dimension, but got scalar"):
        estimator.train(train_input_fn, steps=1)


def broadcast(directory, model_fn, strategy, **kwargs):
    config = tpu.TPUConfig(
        iterations_per_loop=5, per_host_input_for_training=tpu.InputPipelineConfig.BROADCAST
    )
    return make_estimator(
        directory,
        model_fn,
        use_tpu=True,
        tpu_config=config,
        train_distribute=strategy,
        **kwargs,
    )


@pytest.mark.parametrize("replicas", [1, 2])
def test_where_input_is_broadcast_the_first_replica_speaks(tmp_path, strategy, replicas):
    """All replicas have the same tensors, and scalars are fine, as in the original's BROADCAST."""
    recorder = Recorder()

    def with_scalar(step, loss):
        def check(step, scalar):
            assert scalar.shape.rank == 0
            return recorder.record(step, scalar)

        return check, [step, tf.reduce_mean(loss)]

    estimator = broadcast(tmp_path, model_with(with_scalar), strategy(replicas))
    estimator.train(train_input_fn, steps=7)
    assert recorder.steps == [[n] for n in range(1, 8)]
    recorder.steps.clear()
    estimator.evaluate(train_input_fn, steps=3)
    assert recorder.steps == [[7]] * 3


def test_metrics_and_predictions_where_input_is_broadcast(tmp_path, strategy):
    def counts(labels):
        count = tf.metrics.mean(tf.cast(tf.size(labels), tf.float32))
        return {"examples": count}

    def model_fn(features, labels, mode, params):
        if mode == tpu.ModeKeys.PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"sum": tf.reduce_sum(features, axis=1)})
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        if mode == tpu.ModeKeys.EVAL:
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(counts, [labels]))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=adam(loss, params))

    estimator = broadcast(tmp_path, model_fn, strategy(2))
    estimator.train(train_input_fn, steps=1)
    assert estimator.evaluate(train_input_fn, steps=2)["examples"] == 16
    found = [p["sum"] for p in estimator.predict(finite_input_fn(48))]
    np.testing.assert_allclose(found, examples(48)[0].sum(axis=1), rtol=1e-6)
