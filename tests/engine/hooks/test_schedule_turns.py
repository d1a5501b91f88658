"""How often hooks have their turn: every step, every loop, or when they say."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import LossRecorder, make_estimator, make_model_fn, train_input_fn


def test_a_hook_that_says_nothing_is_called_every_step_off_tpu(tmp_path):
    recorder = LossRecorder()
    make_estimator(tmp_path).train(train_input_fn, hooks=[recorder], steps=9)
    assert len(recorder.losses) == 9


def test_with_tpu_semantics_hooks_are_called_once_per_loop(tmp_path, strategy):
    recorder = LossRecorder()
    estimator = make_estimator(tmp_path, use_tpu=True, loop=4, train_distribute=strategy(1))
    estimator.train(train_input_fn, hooks=[recorder], steps=10)
    assert len(recorder.losses) == 3


@pytest.mark.parametrize("summaries", [0, 4])
def test_a_hook_reads_variables_as_they_were_before_the_step(tmp_path, summaries):
    class Steps(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(tf.train.get_global_step())

        def after_run(self, run_context, run_values):
            seen.append(int(run_values.results))

    seen = []

    def model_fn(features, labels, mode, params):
        tf.summary.scalar("mean", tf.reduce_mean(features))
        return make_model_fn()(features, labels, mode, params)

    estimator = make_estimator(tmp_path, model_fn, save_summary_steps=summaries)
    estimator.train(train_input_fn, hooks=[Steps()], steps=12)
    assert seen == list(range(12))


def test_a_loop_may_be_given_in_seconds(tmp_path, strategy):
    class Lengths(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            steps.append(int(run_context.session.run(tf.train.get_global_step())))

    steps = []
    estimator = make_estimator(tmp_path, use_tpu=True, loop="1s", train_distribute=strategy(1))
    estimator.train(train_input_fn, hooks=[Lengths()], steps=5000)
    assert steps[-1] == 5000
    assert max(np.diff(steps)) > 50  # a second holds many of these steps


def test_hooks_that_tell_when_they_need_control_leave_the_loop_alone(tmp_path):
    class Every(LossRecorder):
        def steps_until_control(self, global_step):
            return 6 - global_step % 6

        def after_run(self, run_context, run_values):
            super().after_run(run_context, run_values)
            steps.append(int(run_context.session.run(tf.train.get_global_step())))

    steps = []
    make_estimator(tmp_path).train(train_input_fn, hooks=[Every()], steps=24)
    assert [s for s in steps if s % 6 == 0] == [6, 12, 18, 24]
    assert len(steps) < 24
