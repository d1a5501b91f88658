"""Hooks that end training early, as an estimator makes them."""

from __future__ import annotations

import json

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn

from tpu_estimator_compat import estimator as namespace
from tpu_estimator_compat.hooks.early_stopping import (
    StopAtCheckpointStepHook,
    StopOnPredicateHook,
    StopWithChiefHook,
)

from .idle_hook import Calls

experimental = namespace.experimental


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
