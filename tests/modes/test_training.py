"""Training: step counts, train_ops of every kind, updates wherever they hang."""

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    LossRecorder,
    examples,
    finite_input_fn,
    logits_of,
    make_estimator,
    make_model_fn,
    train_input_fn,
)

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator


def steps_done(estimator) -> int:
    return int(estimator.get_variable_value("global_step"))


@pytest.mark.parametrize("use_tpu", [False, True])
@pytest.mark.parametrize("loop", [1, 7, 100])
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


def test_a_dataset_that_ends_stops_training_cleanly(tmp_path):
    estimator = make_estimator(tmp_path)
    estimator.train(finite_input_fn(16 * 9))
    assert steps_done(estimator) == 9
    assert estimator.latest_checkpoint().endswith("model.ckpt-9")


def test_an_empty_dataset_makes_no_steps_and_says_so(tmp_path, caplog):
    estimator = make_estimator(tmp_path)
    with caplog.at_level("WARNING"):
        estimator.train(finite_input_fn(0))
    assert "made no steps" in caplog.text
    assert steps_done(estimator) == 0


def _gradient_descent(loss):
    step = tf.train.get_global_step()
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)


TRAIN_OPS = {
    "operation": lambda loss, params: _gradient_descent(loss),
    "tensor": lambda loss, params: tf.identity(
        tf2.tuple([tf.constant(1.0)], control_inputs=[_gradient_descent(loss)])[0]
    ),
    "group": lambda loss, params: tf.group(_gradient_descent(loss), tf.no_op()),
    "assign_add": lambda loss, params: tf.assign_add(tf.train.get_global_step(), 1),
    "cond": lambda loss, params: tf.cond(
        loss > -1.0,
        lambda: tf.assign_add(tf.train.get_global_step(), 1),
        lambda: tf.assign_add(tf.train.get_global_step(), 2),
    ),
}


@pytest.mark.parametrize("kind", TRAIN_OPS)
def test_train_op_may_be_anything_that_runs(tmp_path, kind):
    estimator = make_estimator(tmp_path, make_model_fn(TRAIN_OPS[kind]))
    estimator.train(train_input_fn, steps=6)
    assert steps_done(estimator) == 6


def _counter(name):
    return tf.get_variable(name, [], tf.int32, initializer=tf.zeros_initializer(), trainable=False)


def test_updates_run_where_the_user_hung_them_and_nowhere_else(tmp_path):
    def model_fn(features, labels, mode, params):
        names = ("on_train_op", "on_loss", "in_collection", "nowhere")
        updates = {name: tf.assign_add(_counter(name), 1) for name in names}
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, updates["in_collection"])
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        with tf.control_dependencies([updates["on_loss"]]):
            loss = tf.identity(loss)
        train_op = tf.group(_gradient_descent(loss), updates["on_train_op"])
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = make_estimator(tmp_path, model_fn)
    estimator.train(train_input_fn, steps=4)
    counts = {
        name: int(estimator.get_variable_value(name))
        for name in ("on_train_op", "on_loss", "in_collection", "nowhere")
    }
    assert counts == {"on_train_op": 4, "on_loss": 4, "in_collection": 0, "nowhere": 0}


@pytest.mark.parametrize("library", ["keras", "tf_keras"])
def test_updates_of_keras_layers_run_by_themselves(tmp_path, library):
    keras = pytest.importorskip(library)

    def model_fn(features, labels, mode, params):
        training = mode == tpu.ModeKeys.TRAIN
        hidden = keras.layers.Dense(8, activation="relu")(features)
        hidden = keras.layers.BatchNormalization(momentum=0.5)(hidden, training=training)
        logits = keras.layers.Dense(3)(hidden)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == tpu.ModeKeys.EVAL:
            return tpu.TPUEstimatorSpec(mode, loss=loss)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=_gradient_descent(loss))

    estimator = make_estimator(tmp_path, model_fn)
    estimator.train(train_input_fn, steps=8)
    names = estimator.get_variable_names()
    moving = [n for n in names if n.endswith("moving_mean")]
    assert moving, names
    assert np.abs(estimator.get_variable_value(moving[0])).max() > 0.01
    before = estimator.get_variable_value(moving[0])
    estimator.evaluate(train_input_fn, steps=2)
    np.testing.assert_array_equal(estimator.get_variable_value(moving[0]), before)


def test_keras_dropout_draws_a_new_mask_every_step(tmp_path):
    import keras

    masks = []

    class Recorder(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs("dropped:0")

        def after_run(self, run_context, run_values):
            masks.append(run_values.results == 0)

    def model_fn(features, labels, mode, params):
        ones = tf.ones([16, 50])
        dropped = tf.identity(keras.layers.Dropout(0.5)(ones, training=True), name="dropped")
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        loss += 0.0 * tf.reduce_sum(dropped)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=_gradient_descent(loss))

    make_estimator(tmp_path, model_fn).train(train_input_fn, hooks=[Recorder()], steps=3)
    assert len(masks) == 3
    assert not (masks[0] == masks[1]).all()
    assert not (masks[1] == masks[2]).all()


def test_graph_seed_makes_runs_repeatable_and_steps_different(tmp_path):
    def model_fn(features, labels, mode, params):
        noisy = tf.nn.dropout(features, rate=0.5)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(noisy))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=_gradient_descent(loss))

    losses = {}
    for name, seed in (("one", 7), ("again", 7), ("other", 8)):
        recorder = LossRecorder()
        estimator = make_estimator(tmp_path / name, model_fn, tf_random_seed=seed)
        estimator.train(train_input_fn, hooks=[recorder], steps=12)
        losses[name] = recorder.losses
    assert losses["one"] == losses["again"]
    assert losses["one"] != losses["other"]
    # The four batches of an epoch come again every four steps: only dropout differs.
    assert len(set(losses["one"])) == 12


@pytest.mark.parametrize("library", ["keras", "tf1"])
def test_the_seed_reaches_the_first_values_of_layers(tmp_path, library):
    import random

    import keras

    from tpu_estimator_compat import layers

    def model_fn(features, labels, mode, params):
        dense = keras.layers.Dense(3) if library == "keras" else layers.Dense(3)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, dense(features))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=_gradient_descent(loss))

    def first_values(name, seed):
        estimator = make_estimator(tmp_path / name, model_fn, tf_random_seed=seed)
        estimator.train(train_input_fn, steps=1)
        return tf2.train.load_variable(str(tmp_path / name / "model.ckpt-0"), "dense/kernel")

    before = random.getstate()
    one, again, other = first_values("a", 3), first_values("b", 3), first_values("c", 4)
    assert random.getstate() == before
    np.testing.assert_array_equal(one, again)
    assert not np.allclose(one, other)


def test_two_optimizers_while_loops_and_conds(tmp_path):
    def model_fn(features, labels, mode, params):
        _, summed = tf.while_loop(
            lambda i, total: i < 3,
            lambda i, total: (i + 1, total + tf.reduce_sum(features, axis=1)),
            (0, tf.zeros([tf.shape(features)[0]])),
        )
        scale = tf.get_variable("scale", [], initializer=tf.ones_initializer())
        shift = tf.get_variable("shift", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(summed * scale + shift - tf.cast(labels, tf.float32)))
        step = tf.train.get_global_step()
        first = tf.train.AdamOptimizer(0.1, name="first").minimize(loss, var_list=[scale])
        second = tf.train.MomentumOptimizer(0.01, 0.9, name="second")
        with tf.control_dependencies([first]):
            train_op = second.minimize(loss, var_list=[shift], global_step=step)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = make_estimator(tmp_path, model_fn)
    estimator.train(train_input_fn, steps=30)
    names = set(estimator.get_variable_names())
    assert {"scale/first", "scale/first_1", "shift/second"} <= names
    assert estimator.get_variable_value("scale") < 0.5


def test_nan_loss_stops_as_the_original_did(tmp_path):
    def model_fn(features, labels, mode, params):
        step = tf.train.get_global_step()
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        loss += tf.where(step >= 5, float("nan"), 0.0)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=_gradient_descent(loss))

    estimator = make_estimator(tmp_path, model_fn, save_checkpoints_steps=4)
    with pytest.raises(tf.train.NanLossDuringTrainingError, match="NaN loss during training"):
        estimator.train(train_input_fn, steps=100)
    assert steps_done(estimator) == 4


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
        estimator.train(train_input_fn, steps=20)
        values[count] = {n: estimator.get_variable_value(n) for n in ("hidden", "output")}
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
            mode, loss=loss, train_op=tf.group(_gradient_descent(loss), updates)
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
        train_op = tf.group(tf.assign(seen, in_pairs), _gradient_descent(loss))
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
