"""Seeded random ops draw what they would draw in a session of TF1, whoever listens to the steps.

There an op has one kernel, whose stream goes on from step to step. Here hooks, loops and executors
decide which function makes a step.
"""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu

STEPS, SEED = 60, 3
DRAWS = {
    "uniform": lambda: tf.random.uniform([2], seed=1),
    "normal": lambda: tf.random.normal([2], seed=2),
    "truncated": lambda: tf.random.truncated_normal([2], seed=3),
    "integers": lambda: tf.random.uniform([2], maxval=1000, dtype=tf.int32, seed=4),
    "double": lambda: tf.random.uniform([2], dtype=tf.float64, seed=5),
}


def of_a_session(steps):
    """What a session of TF1 draws in each step, by name: float64 of shape [steps, 2]."""
    with tf.Graph().as_default():
        tf.set_random_seed(SEED)
        drawn = {name: draw() for name, draw in DRAWS.items()}
        with tf.Session() as session:
            found = [session.run(drawn) for _ in range(steps)]
    return {name: np.array([step[name] for step in found], np.float64) for name in DRAWS}


def model_fn(features, labels, mode, params):
    del labels, params
    step = tf.train.get_global_step()
    kept = []
    for name, draw in DRAWS.items():
        drawn = tf.get_variable(name, [STEPS, 2], tf.float64, tf.zeros_initializer())
        kept.append(tf.scatter_update(drawn, step, tf.cast(draw(), tf.float64)))
    weights = tf.get_variable("weights", [2, 1])
    loss = tf.reduce_mean(tf.matmul(features, weights) ** 2)
    tf.summary.scalar("loss_again", loss)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with tf.control_dependencies(kept):
        train_op = optimizer.minimize(loss, step, var_list=[weights])
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    return tf.data.Dataset.from_tensors(np.ones([4, 2], np.float32)).repeat()


class EveryStep(tf.train.SessionRunHook):
    """Has control around every step."""


class NowAndThen(tf.train.SessionRunHook):
    """Asks for more in some steps, which are another function then."""

    def begin(self):
        self._steps = 0

    def before_run(self, run_context):
        self._steps += 1
        if self._steps % 3:
            return None
        return tf.train.SessionRunArgs(run_context.session.graph.get_tensor_by_name("uniform:0"))


def trained(model_dir, hooks=(), steps=STEPS):
    config = tpu.RunConfig(
        model_dir=str(model_dir), tf_random_seed=SEED, save_summary_steps=7, log_step_count_steps=11
    )
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=4)
    estimator.train(input_fn, hooks=list(hooks), steps=steps)
    return estimator


@pytest.mark.parametrize("hooks", [[], [EveryStep], [NowAndThen], [EveryStep, NowAndThen]])
def test_one_stream_whatever_makes_the_steps(tmp_path, hooks):
    estimator = trained(tmp_path, [hook() for hook in hooks])
    for name, expected in of_a_session(STEPS).items():
        np.testing.assert_array_equal(estimator.get_variable_value(name), expected, name)


def test_a_call_begins_anew(tmp_path):
    half = STEPS // 2
    estimator = trained(tmp_path, steps=half)
    estimator.train(input_fn, steps=half)
    for name, expected in of_a_session(half).items():
        np.testing.assert_array_equal(
            estimator.get_variable_value(name), np.concatenate([expected, expected]), name
        )


def test_streams_are_in_no_checkpoint(tmp_path):
    names = trained(tmp_path, steps=1).get_variable_names()
    assert sorted(names) == sorted([*DRAWS, "global_step", "weights"])
