import json

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import Calls, make_estimator, make_model_fn, train_input_fn

from tpu_estimator_compat import estimator as namespace
from tpu_estimator_compat.estimator.early_stopping import read_eval_metrics

experimental = namespace.experimental


@pytest.mark.parametrize("use_tpu", [False, True])
def test_in_memory_evaluation_gives_what_a_checkpoint_would(tmp_path, strategy, use_tpu):
    replicas = {"use_tpu": use_tpu, "train_distribute": strategy(2 if use_tpu else 1)}
    estimator = make_estimator(tmp_path, save_checkpoints_steps=10, **replicas)
    hook = experimental.InMemoryEvaluatorHook(estimator, train_input_fn, steps=4, every_n_iter=10)
    calls = Calls()
    estimator.train(train_input_fn, hooks=[hook, calls], max_steps=25)
    in_memory = read_eval_metrics(estimator.eval_dir())
    assert list(in_memory) == [0, 10, 20, 25]
    for step, metrics in in_memory.items():
        path = str(tmp_path / f"model.ckpt-{step}")
        results = estimator.evaluate(train_input_fn, steps=4, checkpoint_path=path)
        for name, value in metrics.items():
            assert value == pytest.approx(results[name], rel=1e-6)


def _one_shot():
    data = tf.data.Dataset.range(6).map(lambda i: tf.cast(i, tf.float32))
    return tf.data.make_one_shot_iterator(data.batch(2)).get_next()


def _queued():
    numbers = tf.train.input_producer(tf.range(6.0), num_epochs=1, shuffle=False)
    return tf.train.batch([numbers.dequeue()], 2)


@pytest.mark.parametrize("input_fn", [_one_shot, _queued])
def test_each_evaluation_has_all_of_the_data(tmp_path, input_fn):
    def model_fn(features, labels, mode):
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean((features - weight) ** 2)
        train_op = tf.assign_add(tf.train.get_global_step(), 1)
        metrics = {"mean": tf.metrics.mean(features)}
        return namespace.EstimatorSpec(mode, None, loss, train_op, metrics)

    estimator = namespace.Estimator(model_fn, str(tmp_path))
    hook = experimental.InMemoryEvaluatorHook(estimator, input_fn, every_n_iter=2)
    estimator.train(lambda: tf.data.Dataset.from_tensors([1.0]).repeat(), hooks=[hook], steps=4)
    found = read_eval_metrics(estimator.eval_dir())
    assert {step: metrics["mean"] for step, metrics in found.items()} == {0: 2.5, 2: 2.5, 4: 2.5}


def test_in_memory_evaluation_refuses_what_it_cannot_do(tmp_path, monkeypatch):
    estimator = make_estimator(tmp_path)
    make = experimental.InMemoryEvaluatorHook
    with pytest.raises(ValueError, match="invalid every_n_iter=0"):
        make(estimator, train_input_fn, every_n_iter=0)
    with pytest.raises(ValueError, match="Must specify steps > 0, given: 0"):
        make(estimator, train_input_fn, steps=0)
    with pytest.raises(TypeError, match="Hooks must be a SessionRunHook"):
        make(estimator, train_input_fn, hooks=[3])
    plain = make_model_fn()

    def with_saver(features, labels, mode, params):
        spec = plain(features, labels, mode, params)
        if mode == "eval":
            scaffold = tf.train.Scaffold(saver=tf.train.Saver(tf.global_variables()))
            spec = spec._replace(scaffold_fn=lambda: scaffold)
        return spec

    estimator = make_estimator(tmp_path, with_saver)
    hook = make(estimator, train_input_fn, steps=1)
    with pytest.raises(ValueError, match="InMemoryEvaluator does not support custom saver"):
        estimator.train(train_input_fn, hooks=[hook], steps=1)
    cluster = {"chief": ["localhost:1"], "worker": ["localhost:2"]}
    task = {"type": "chief", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    with pytest.raises(ValueError, match="supports only single machine"):
        make(_in_cluster(estimator), train_input_fn)


def _in_cluster(estimator):
    """An estimator that knows of two workers, without waiting for the other."""

    class Known:
        config = namespace.RunConfig()

    assert Known.config.num_worker_replicas == 2
    return Known
