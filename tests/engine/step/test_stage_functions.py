"""Stages of a step that all replicas of a machine call as one function."""

import numpy as np
import pytest
import tensorflow as tf
from support.untuned import untuned
from tensorflow.compiler.tf2xla.python import xla

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.step import stage_functions

tf1 = tf.compat.v1

NEVER = 10**9


@pytest.fixture
def shared(monkeypatch):
    """`shared(fewest_ops)`: stages from that size on are functions; gives the calls of each."""

    def of(fewest_ops):
        made = []

        class Counted(stage_functions.StageFunction):
            def __init__(self, *args):
                super().__init__(*args)
                self.calls = 0
                made.append(self)

            def __call__(self, inputs):
                self.calls += 1
                return super().__call__(inputs)

        monkeypatch.setattr(stage_functions, "FEWEST_OPS", fewest_ops)
        monkeypatch.setattr(stage_functions, "StageFunction", Counted)
        return made

    return of


def optimizer():
    return tpu.CrossShardOptimizer(tf1.train.AdamOptimizer(0.1))


def with_effects(x, y):
    """Reads, branches, asserts, random numbers, moving averages: what orders and what draws."""
    table = tf1.get_variable("table", [8, 4], initializer=tf1.random_normal_initializer(seed=1))
    mean = tf1.get_variable("mean", [4], trainable=False, initializer=tf1.zeros_initializer())
    h = tf.nn.embedding_lookup(table, x)
    with tf.control_dependencies([tf1.assert_less(x, 8)]):
        h = tf1.nn.dropout(tf.identity(h), rate=0.25, seed=3)
    h = tf.cond(tf.reduce_sum(h) > 0, lambda: h * 2.0, lambda: h - 1.0)
    update = mean.assign_sub(0.1 * (mean - tf.reduce_mean(h, axis=0)))
    w = tf1.get_variable("w", [4], initializer=tf1.ones_initializer())
    with tf.control_dependencies([update]):
        loss = tf.reduce_mean((tf.reduce_sum((h - mean) * w, axis=1) - y) ** 2)
    train_op = optimizer().minimize(loss, tf1.train.get_global_step())
    return loss, tf.group(train_op, update)


def with_ids(x, y):
    """Each replica knows which it is."""
    w = tf1.get_variable("w", [], initializer=tf1.ones_initializer())
    place = tf.cast(xla.replica_id(), tf.float32)
    loss = tf.reduce_mean((tf.cast(x, tf.float32) * w + place - y) ** 2)
    return loss, optimizer().minimize(loss, tf1.train.get_global_step())


def model_fn(features, labels, mode, params):
    loss, train_op = params["model"](features, labels)
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    rng = np.random.RandomState(0)
    x, y = rng.randint(0, 8, 64).astype(np.int32), rng.rand(64).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat()
    return untuned(data.batch(params["batch_size"], drop_remainder=True))


class Steps(tf1.train.SessionRunHook):
    """Has control around every step, which then is fetched from by a function of its own."""

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs(tf1.train.get_global_step())


@pytest.fixture
def trained(tmp_path, strategy):
    """`trained(model, name, replicas)`: variables after seven steps, in calls of three and four."""

    def of(model, name, replicas=4, **more):
        estimator = tpu.TPUEstimator(
            model_fn,
            config=tpu.RunConfig(
                model_dir=tmp_path / name,
                tf_random_seed=5,
                train_distribute=strategy(replicas),
                tpu_config=tpu.TPUConfig(iterations_per_loop=2),
            ),
            params={"model": model},
            train_batch_size=16,
            **more,
        )
        estimator.train(input_fn, steps=3)
        estimator.train(input_fn, steps=4, hooks=[Steps()])
        return {n: estimator.get_variable_value(n) for n in estimator.get_variable_names()}

    return of


@pytest.mark.parametrize("use_tpu", [True, False])
def test_the_numbers_are_the_same(use_tpu, shared, trained):
    calls = shared(NEVER)
    apart = trained(with_effects, "apart", use_tpu=use_tpu)
    assert not calls
    calls = shared(0)
    together = trained(with_effects, "together", use_tpu=use_tpu)
    assert calls
    assert {function.calls % 4 for function in calls} == {0}  # once for each replica
    assert apart.keys() == together.keys()
    for name, value in apart.items():
        np.testing.assert_array_equal(together[name], value, err_msg=name)
    assert together["global_step"] == 7
    assert np.ptp(together["mean"])


def test_replicas_that_differ_have_their_own(shared, trained):
    calls = shared(0)
    found = trained(with_ids, "ids")
    assert found["global_step"] == 7
    # What knows the id is built for each; the update, after the exchange, is the same for all.
    assert {function.calls % 4 for function in calls} == {0}
    shared(NEVER)
    np.testing.assert_array_equal(trained(with_ids, "apart")["w"], found["w"])


def test_small_stages_are_built_in(shared, trained):
    calls = shared(stage_functions.FEWEST_OPS)
    trained(with_ids, "small")
    assert not calls


def test_replicas_draw_numbers_of_their_own(shared, tmp_path, strategy):
    """One kernel serves all replicas: without seeds, too, they draw one number after another."""

    def drawing(features, labels, mode, params):
        w = tf1.get_variable("w", [], initializer=tf1.ones_initializer())
        seen = tf1.get_variable("seen", [], trainable=False, initializer=tf1.zeros_initializer())
        drawn = tf1.random.uniform([], seed=params["seed"])
        count = tf1.tpu.cross_replica_sum(tf.stack([drawn, drawn**2]))
        spread = count[1] / 4 - (count[0] / 4) ** 2
        loss = w * drawn
        with tf.control_dependencies([seen.assign_add(spread)]):
            train_op = optimizer().minimize(loss, tf1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    for seed in (None, 3):
        calls = shared(0)
        estimator = tpu.TPUEstimator(
            drawing,
            config=tpu.RunConfig(model_dir=tmp_path / f"{seed}", train_distribute=strategy(4)),
            params={"seed": seed},
            train_batch_size=16,
        )
        estimator.train(input_fn, steps=1)
        assert calls
        assert estimator.get_variable_value("seen") > 1e-4
