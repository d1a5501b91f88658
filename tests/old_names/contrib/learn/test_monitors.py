"""Monitors of `tf.contrib.learn`."""

import tensorflow.compat.v1 as tf
from support.proofs.contrib.learn import monitors as proofs
from support.proofs.proving import each_proof_of

from tpu_estimator_compat.old_names.contrib import learn
from tpu_estimator_compat.old_names.contrib.learn.experiment import Experiment

from .line_model import line, line_input_fn

test_served_names = each_proof_of(proofs)


def test_experiments_and_monitors(tmp_path):
    captured = learn.monitors.CaptureVariable("w:0", every_n=2)
    estimator = learn.Estimator(
        line,
        config=learn.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=2),
        params={"rate": 0.01},
    )
    metrics = {"mae": learn.MetricSpec(tf.metrics.mean_absolute_error)}
    trial = Experiment(
        estimator,
        line_input_fn,
        line_input_fn,
        metrics,
        train_steps=4,
        eval_steps=1,
        train_monitors=[captured, learn.monitors.LoggingTrainable(every_n=2)],
        check_interval_secs=None,
    )
    results, _ = trial.train_and_evaluate()
    assert results["global_step"] == 4
    assert results["mae"] > 0
    assert sorted(captured.values) == [1, 3]
