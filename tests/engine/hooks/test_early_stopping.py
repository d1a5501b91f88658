"""The steps that early stopping is made of: results of evaluations, and a stop at a checkpoint."""

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn

from tpu_estimator_compat.engine.hooks.early_stopping import (
    StopAtCheckpointStepHook,
    read_eval_metrics,
)
from tpu_estimator_compat.estimator import experimental


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


def test_a_worker_stops_once_the_checkpoint_is_written(tmp_path):
    steps_in_checkpoint = iter([0, 4, 8])
    hook = StopAtCheckpointStepHook(lambda: next(steps_in_checkpoint), 6, 0.01)
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, hooks=[hook], max_steps=50)
    assert estimator.get_variable_value("global_step") == 8  # two steps more, waiting
    with pytest.raises(ValueError, match="last_step must be specified"):
        StopAtCheckpointStepHook(lambda: 0, None)


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
