"""Early stopping, and evaluation in memory: beyond what the conformance tests compare."""

from __future__ import annotations

import json

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, make_model_fn, train_input_fn

from tpu_estimator_compat import estimator as namespace
from tpu_estimator_compat.hooks.early_stopping import (
    StopAtCheckpointStepHook,
    StopOnPredicateHook,
    StopWithChiefHook,
    read_eval_metrics,
)

experimental = namespace.experimental


class Calls(tf.train.SessionRunHook):
    """Counts its turns, and asks for none."""

    def __init__(self):
        self.count = 0

    def steps_until_control(self, global_step):
        return None

    def after_run(self, run_context, run_values):
        self.count += 1


@pytest.mark.parametrize("use_tpu", [False, True])
@pytest.mark.parametrize("replicas", [1, 2])
def test_a_function_of_the_users_own_stops(tmp_path, strategy, use_tpu, replicas):
    if not use_tpu and replicas > 1:
        replicas = 1
    estimator = make_estimator(tmp_path, use_tpu=use_tpu, train_distribute=strategy(replicas))
    asked = []

    def should_stop():
        asked.append(True)
        return len(asked) == 3

    hook = experimental.make_early_stopping_hook(
        estimator, should_stop, run_every_secs=None, run_every_steps=20
    )
    estimator.train(train_input_fn, hooks=[hook], max_steps=1000)
    assert len(asked) == 3
    assert 40 <= estimator.get_variable_value("global_step") <= 50
    assert estimator.get_variable_value("signal_early_stopping/STOP")


def test_the_hook_is_called_when_it_is_due_and_the_loop_runs_in_between(tmp_path):
    estimator = make_estimator(tmp_path, log_step_count_steps=None)
    hook = experimental.make_early_stopping_hook(
        estimator, lambda: False, run_every_secs=None, run_every_steps=50
    )
    calls = Calls()
    estimator.train(train_input_fn, hooks=[hook, calls], max_steps=400)
    assert 9 <= calls.count < 40


def test_arguments_are_checked(tmp_path):
    estimator = make_estimator(tmp_path)
    make = experimental.make_early_stopping_hook
    with pytest.raises(TypeError, match="`estimator` must have type"):
        make("estimator", lambda: False)
    with pytest.raises(ValueError, match="Only one of `run_every_secs` and `run_every_steps`"):
        make(estimator, lambda: False, run_every_secs=60, run_every_steps=60)
    with pytest.raises(ValueError, match="Either every_secs or every_steps should be provided"):
        make(estimator, lambda: False, run_every_secs=None, run_every_steps=None)
    with pytest.raises(TypeError, match="`should_stop_fn` must be callable"):
        make(estimator, True)


def test_a_metric_that_was_not_evaluated_is_named(tmp_path):
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, max_steps=1)
    estimator.evaluate(train_input_fn, steps=1)
    hook = experimental.stop_if_higher_hook(estimator, "auc", 0.5, run_every_secs=0.0)
    with pytest.raises(KeyError, match="'auc' is not among the metrics of the evaluation at step"):
        hook._should_stop_fn()


def test_events_are_read_in_the_order_of_steps_and_damage_is_skipped(tmp_path, caplog):
    estimator = make_estimator(tmp_path)
    assert read_eval_metrics(estimator.eval_dir()) == {}
    results = {}
    for steps in (10, 5):
        estimator.train(train_input_fn, steps=steps)
        one = estimator.evaluate(train_input_fn, steps=2)
        results[int(one["global_step"])] = one
    metrics = read_eval_metrics(estimator.eval_dir())
    assert list(metrics) == [10, 15]
    for step, one in results.items():
        assert metrics[step] == {"accuracy": one["accuracy"], "loss": one["loss"]}
    tf.summary.FileWriterCache.clear()
    [path] = (tmp_path / "eval").iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    with caplog.at_level("WARNING"):
        assert list(read_eval_metrics(estimator.eval_dir())) == [10, 15]
    assert "Skipping rest of the file" in caplog.text


def test_who_is_not_the_chief_leaves_the_decision_to_it(tmp_path, monkeypatch):
    cluster = {"chief": ["localhost:1"], "worker": ["localhost:2"]}
    task = {"type": "evaluator", "index": 0}
    assert isinstance(_hooks(tmp_path)[0], StopOnPredicateHook)
    assert isinstance(_hooks(tmp_path)[1], tf.train.StopAtStepHook)
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    stopping, at_checkpoint = _hooks(tmp_path)
    assert isinstance(stopping, StopWithChiefHook)
    assert isinstance(at_checkpoint, StopAtCheckpointStepHook)


def _hooks(model_dir):
    estimator = make_estimator(model_dir)
    return (
        experimental.make_early_stopping_hook(estimator, lambda: False),
        experimental.make_stop_at_checkpoint_step_hook(estimator, 5),
    )


def test_a_worker_stops_once_the_checkpoint_is_written(tmp_path):
    steps_in_checkpoint = iter([0, 4, 8])
    hook = StopAtCheckpointStepHook(lambda: next(steps_in_checkpoint), 6, 0.01)
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, hooks=[hook], max_steps=50)
    assert estimator.get_variable_value("global_step") == 8  # two steps more, waiting
    with pytest.raises(ValueError, match="last_step must be specified"):
        StopAtCheckpointStepHook(lambda: 0, None)


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
