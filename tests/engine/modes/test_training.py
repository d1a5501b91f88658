import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    Fetching,
    examples,
    finite_input_fn,
    gradient_descent,
    last_loss,
    logits_of,
    make_estimator,
    make_model_fn,
    steps_done,
    train_input_fn,
)

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator


@pytest.mark.parametrize(("use_tpu", "loop"), [(False, 7), (True, 1), (True, 7), (True, 100)])
def test_runs_exactly_the_steps_asked_for(tmp_path, strategy, use_tpu, loop):
    estimator = make_estimator(
        tmp_path, use_tpu=use_tpu, loop=loop, train_distribute=strategy(1) if use_tpu else None
    )
    estimator.train(train_input_fn, steps=10)
    assert steps_done(estimator) == 10
    estimator.train(train_input_fn, max_steps=25)
    assert steps_done(estimator) == 25
    estimator.train(train_input_fn, max_steps=25)
    assert steps_done(estimator) == 25
    estimator.train(train_input_fn, steps=3)
    assert steps_done(estimator) == 28


COUNTERS = {  # the number of a step, and the global step, to an operation
    "by two": lambda number, step: tf.group(step.assign_add(1), step.assign_add(1)),
    "by examples": lambda number, step: step.assign_add(32),
    "as a critic": lambda number, step: step.assign_add(
        tf.cast(tf.where(number % 3 > 0, 1, 5), tf.int64)
    ),
    "in a branch": lambda number, step: tf.cond(
        number % 2 > 0, lambda: step.assign_add(1), lambda: step.assign_add(3)
    ),
    "in a function": lambda number, step: tf.function(lambda: step.assign_add(2))(),
}


@pytest.mark.parametrize(
    ("counter", "steps", "saved"),
    [
        ("by two", 4, [0, 4, 8]),
        ("by examples", 2, [0, 32, 64]),
        ("as a critic", 4, [0, 7, 8]),
        ("in a branch", 5, [0, 4, 8, 9]),
        ("in a function", 4, [0, 4, 8]),
    ],
)
def test_what_is_due_is_asked_of_the_counter(tmp_path, counter, steps, saved):
    """With TensorFlow 2.15's numbers, which returned to Python after each step."""

    def train_op(loss, params):
        number = tf.get_variable("number", [], tf.int32, initializer=tf.zeros_initializer())
        with tf.control_dependencies([loss]):
            now = number.assign_add(1)
        with tf.control_dependencies([now]):
            made = COUNTERS[counter](tf.identity(now), tf.train.get_global_step())
            return made if isinstance(made, tf.Operation) else tf.group(made)

    estimator = make_estimator(tmp_path, make_model_fn(train_op), save_checkpoints_steps=3)
    estimator.train(train_input_fn, steps=7)
    found = tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths
    assert [int(path.rpartition("-")[2]) for path in found] == saved
    assert estimator.get_variable_value("number") == steps


def test_an_empty_dataset_makes_no_steps_and_says_so(tmp_path, caplog):
    estimator = make_estimator(tmp_path)
    with caplog.at_level("WARNING"):
        estimator.train(finite_input_fn(0))
    assert "made no steps" in caplog.text
    assert steps_done(estimator) == 0


def test_jit_compile_gives_the_same_losses(tmp_path):
    losses = {}
    for jit in (False, True):
        estimator = make_estimator(tmp_path / str(jit), jit_compile=jit, log_step_count_steps=None)
        estimator.train(train_input_fn, steps=20)
        losses[jit] = estimator.evaluate(train_input_fn, steps=4)["loss"]
    assert losses[True] == pytest.approx(losses[False], rel=1e-4)


@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_train_as_one_with_the_same_global_batch(tmp_path, strategy, replicas):
    values = {}
    for count in (1, replicas):
        estimator = make_estimator(
            tmp_path / str(count), use_tpu=True, train_distribute=strategy(count)
        )
        recorder = Fetching(last_loss)
        estimator.train(train_input_fn, steps=20, hooks=[recorder])
        values[count] = {n: estimator.get_variable_value(n) for n in ("hidden", "output")}
        values[count]["losses"] = recorder.seen
    for name, value in values[1].items():
        np.testing.assert_allclose(values[replicas][name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrapped", [False, True])
def test_optimizers_average_over_a_strategy_off_tpu(tmp_path, strategy, wrapped):
    def descend(loss, params):
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        if wrapped:
            optimizer = tpu.CrossShardOptimizer(optimizer)
        return optimizer.minimize(loss, global_step=tf.train.get_global_step())

    one = make_estimator(tmp_path / "one", make_model_fn(descend), train_batch_size=32)
    one.train(train_input_fn, steps=10)
    two = make_estimator(
        tmp_path / "two", make_model_fn(descend), train_distribute=strategy(2)
    )  # a batch of 16 for each replica, as under the original
    two.train(train_input_fn, steps=10)
    for name in ("hidden", "output", "output/Momentum"):
        np.testing.assert_allclose(
            one.get_variable_value(name), two.get_variable_value(name), rtol=1e-5, atol=1e-6
        )


def test_moving_averages_are_averaged_over_a_strategy_off_tpu(tmp_path, strategy):
    def model_fn(features, labels, mode, params):
        from tpu_estimator_compat import layers

        normal = layers.batch_normalization(features, momentum=0.5, training=True)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(normal))
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=tf.group(gradient_descent(loss), updates)
        )

    estimator = make_estimator(tmp_path, model_fn, train_distribute=strategy(2))
    estimator.train(train_input_fn, steps=1)
    x, _ = examples()
    expected = 0.5 * (x[:16].mean(axis=0) + x[16:32].mean(axis=0)) / 2
    found = estimator.get_variable_value("batch_normalization/moving_mean")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_cross_replica_sum_honours_subgroups(tmp_path, strategy):
    from tensorflow.python.tpu.ops import tpu_ops

    def model_fn(features, labels, mode, params):
        mine = tf.reduce_sum(features)
        in_pairs = tpu_ops.cross_replica_sum(mine, [[0, 1], [2, 3]])
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        seen = tf.get_variable("seen", [], initializer=tf.zeros_initializer(), trainable=False)
        train_op = tf.group(tf.assign(seen, in_pairs), gradient_descent(loss))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn(params):
        values = tf.reshape(tf.range(16 * 4, dtype=tf.float32), [16, 4])
        labels = tf.zeros([16], tf.int32)
        return tf.data.Dataset.from_tensors((values, labels)).repeat()

    estimator = make_estimator(tmp_path, model_fn, use_tpu=True, train_distribute=strategy(4))
    estimator.train(input_fn, steps=1)
    assert estimator.get_variable_value("seen") == sum(range(32))


def test_tpu_strategy_of_tf1_gives_hooks_their_turn_once_per_run(tmp_path):
    class Counter(tf.train.SessionRunHook):
        runs = 0

        def after_run(self, run_context, run_values):
            self.runs += 1

    def model_fn(features, labels, mode):
        return make_model_fn()(features, labels, mode, {"use_tpu": False}).as_estimator_spec()

    strategy = tpu.TPUStrategy(steps_per_run=5)
    config = estimator.RunConfig(str(tmp_path), train_distribute=strategy)
    hook = Counter()
    est = estimator.Estimator(model_fn, config=config)
    est.train(lambda: train_input_fn({"batch_size": 4}), hooks=[hook], steps=20)
    assert hook.runs == 4
    assert est.get_variable_value("global_step") == 20
