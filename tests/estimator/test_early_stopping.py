import json

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import Calls, make_estimator, train_input_fn

from tpu_estimator_compat import estimator as namespace
from tpu_estimator_compat.estimator.early_stopping import StopWithChiefHook, _hooks, _original

experimental = namespace.experimental


def test_loops_run_between_the_turns_of_the_hook(tmp_path):
    estimator = make_estimator(tmp_path, log_step_count_steps=None)
    hook = experimental.make_early_stopping_hook(
        estimator, lambda: False, run_every_secs=None, run_every_steps=50
    )
    calls = Calls()
    estimator.train(train_input_fn, hooks=[hook, calls], max_steps=400)
    assert 9 <= calls.count < 40


def test_a_metric_that_was_not_evaluated_is_named(tmp_path):
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, max_steps=1)
    estimator.evaluate(train_input_fn, steps=1)
    hook = experimental.stop_if_higher_hook(estimator, "auc", 0.5, run_every_secs=0.0)
    with pytest.raises(KeyError, match="'auc' is not among the metrics of the evaluation at step"):
        hook._should_stop_fn()


@pytest.mark.parametrize(
    ("make", "limit", "losses", "stops_at"),
    [
        (experimental.stop_if_no_decrease_hook, 20, [1.0, 2.0, 1.0, 0.5], 30),
        (experimental.stop_if_no_decrease_hook, 20, [2.0, 1.0, 3.0, 1.0], 40),
        (experimental.stop_if_no_increase_hook, 20, [1.0, 2.0, 1.0, 2.0], 40),
        (experimental.stop_if_higher_hook, 1.0, [0.5, 1.0, 1.5, 0.5], 30),
        (experimental.stop_if_lower_hook, 1.0, [1.5, 1.0, 0.5, 1.5], 30),
    ],
)
def test_the_evaluation_that_stops(tmp_path, make, limit, losses, stops_at):
    """There is one in every tenth step; who has stopped goes on saying so."""
    hook = make(make_estimator(tmp_path), "loss", limit, str(tmp_path), run_every_secs=0.0)
    stops = []
    with tf.Graph().as_default(), tf.summary.FileWriter(str(tmp_path)) as events:
        for step, loss in zip((10, 20, 30, 40), losses, strict=True):
            value = tf.Summary.Value(tag="loss", simple_value=loss)
            events.add_summary(tf.Summary(value=[value]), step)
            events.flush()
            stops += [step] if hook._should_stop_fn() else []
    assert stops == list(range(stops_at, 50, 10))


def test_who_is_not_the_chief_leaves_the_decision_to_it(tmp_path, monkeypatch):
    cluster = {"chief": ["localhost:1"], "worker": ["localhost:2"]}
    task = {"type": "evaluator", "index": 0}
    assert isinstance(made(tmp_path)[0], _original._StopOnPredicateHook)
    assert isinstance(made(tmp_path)[1], tf.train.StopAtStepHook)
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    stopping, at_checkpoint = made(tmp_path)
    assert isinstance(stopping, StopWithChiefHook)
    assert isinstance(at_checkpoint, _hooks._StopAtCheckpointStepHook)


def made(model_dir):
    estimator = make_estimator(model_dir)
    return (
        experimental.make_early_stopping_hook(estimator, lambda: False),
        experimental.make_stop_at_checkpoint_step_hook(estimator, 5),
    )
