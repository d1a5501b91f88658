"""First values from checkpoints: warm starts, init_from_checkpoint, scaffolds."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import logits_of, make_estimator, make_model_fn, train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as tf_estimator
from tpu_estimator_compat import layers

from .training import checkpoint_steps, gradient_descent


def test_init_from_checkpoint_in_model_fn_and_scaffold_fn(tmp_path):
    first = make_estimator(tmp_path / "first")
    first.train(train_input_fn, steps=5)
    path = first.latest_checkpoint()

    def in_model_fn(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        tf.train.init_from_checkpoint(path, {"hidden": "hidden", "output": "output"})
        no_op = tf.assign_add(tf.train.get_global_step(), 1)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=no_op)

    def in_scaffold_fn(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))

        def scaffold_fn():
            tf.train.init_from_checkpoint(path, {"/": "/"} if False else {"hidden": "hidden"})
            return tf.train.Scaffold()

        # Changes nothing, yet exchanges, as TPU rules demand.
        optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.0))
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, scaffold_fn=scaffold_fn)

    for use_tpu, model_fn in (
        (False, in_model_fn),
        (False, in_scaffold_fn),
        (True, in_scaffold_fn),
    ):
        name = f"{model_fn.__name__}-{use_tpu}"
        second = make_estimator(tmp_path / name, model_fn, use_tpu=use_tpu)
        second.train(train_input_fn, steps=1)
        np.testing.assert_array_equal(
            second.get_variable_value("hidden"), first.get_variable_value("hidden")
        )


def test_init_from_checkpoint_of_layers(tmp_path):
    """Their first initialisers, which lie in the code of layers, are not updates of theirs."""

    def model_fn(features, labels, mode):
        logits = layers.dense(features, 3)
        if tf.io.gfile.exists(f"{first.model_dir}/checkpoint"):
            tf.train.init_from_checkpoint(first.model_dir, {"dense/": "dense/"})
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        no_op = tf.assign_add(tf.train.get_global_step(), 1)
        return tf_estimator.EstimatorSpec(mode, loss=loss, train_op=no_op)

    def input_fn():
        data = np.ones([8, 4], np.float32), np.zeros([8], np.int64)
        return tf.data.Dataset.from_tensors(data).repeat()

    first = tf_estimator.Estimator(model_fn, str(tmp_path / "first"))
    first.train(input_fn, steps=2)
    second = tf_estimator.Estimator(model_fn, str(tmp_path / "second"))
    second.train(input_fn, steps=2)
    np.testing.assert_array_equal(
        second.get_variable_value("dense/kernel"), first.get_variable_value("dense/kernel")
    )


def test_warm_start_from_path_and_settings(tmp_path):
    first = make_estimator(tmp_path / "first")
    first.train(train_input_fn, steps=5)
    only_hidden = tpu.WarmStartSettings(str(tmp_path / "first"), vars_to_warm_start="hidden")
    fixed = make_model_fn(lambda loss, params: tf.assign_add(tf.train.get_global_step(), 1))
    for name, source in (("path", str(tmp_path / "first")), ("settings", only_hidden)):
        warm = make_estimator(tmp_path / name, fixed, warm_start_from=source)
        warm.train(train_input_fn, steps=2)
        same = {
            n: bool(np.array_equal(warm.get_variable_value(n), first.get_variable_value(n)))
            for n in ("hidden", "output")
        }
        assert same == {"hidden": True, "output": name == "path"}
        assert int(warm.get_variable_value("global_step")) == 2


def test_warm_started_values_are_evaluated_where_there_is_no_checkpoint(tmp_path):
    first = make_estimator(tmp_path / "first")
    first.train(train_input_fn, steps=50)
    expected = first.evaluate(train_input_fn, steps=4)
    warm = make_estimator(tmp_path / "warm", warm_start_from=str(tmp_path / "first"))
    assert warm.evaluate(train_input_fn, steps=4)["loss"] == expected["loss"]


def test_a_checkpoint_in_model_dir_wins_over_warm_start(tmp_path):
    first = make_estimator(tmp_path / "first")
    first.train(train_input_fn, steps=30)
    second = make_estimator(tmp_path / "second")
    second.train(train_input_fn, steps=3)
    expected = second.evaluate(train_input_fn, steps=4)["loss"]
    warm = make_estimator(tmp_path / "second", warm_start_from=str(tmp_path / "first"))
    assert warm.evaluate(train_input_fn, steps=4)["loss"] == expected


def test_scaffold_init_fn_and_own_saver(tmp_path):
    def model_fn(features, labels, mode, params):
        logits = logits_of(features)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        with tf.variable_scope("", reuse=True):
            hidden = tf.get_variable("hidden")
        value = tf.placeholder(tf.float32, hidden.shape)
        load = tf.assign(hidden, value)

        def scaffold_fn():
            return tf.train.Scaffold(
                init_fn=lambda scaffold, session: session.run(
                    load, {value: np.full(hidden.shape, 0.25)}
                ),
                saver=tf.train.Saver([hidden, tf.train.get_global_step()], max_to_keep=1),
            )

        step = tf.assign_add(tf.train.get_global_step(), 1)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=step, scaffold_fn=scaffold_fn)

    estimator = make_estimator(tmp_path, model_fn, save_checkpoints_steps=2)
    estimator.train(train_input_fn, steps=4)
    assert estimator.get_variable_names() == ["global_step", "hidden"]
    assert (estimator.get_variable_value("hidden") == 0.25).all()
    assert checkpoint_steps(tmp_path) == [4]


def test_moving_averages_are_restored_in_evaluation(tmp_path):
    def model_fn(features, labels, mode, params):
        logits = logits_of(features)
        average = tf.train.ExponentialMovingAverage(0.5)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == tpu.ModeKeys.TRAIN:
            with tf.control_dependencies([gradient_descent(loss)]):
                train_op = average.apply(tf.trainable_variables())
            return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
        hidden = tf.trainable_variables()[0]

        def scaffold_fn():
            return tf.train.Scaffold(saver=tf.train.Saver(average.variables_to_restore()))

        def metrics(rows):
            return {"hidden": tf.metrics.mean(rows)}

        rows = tf.reshape(tf.reduce_sum(hidden), [1])
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metrics, [rows]), scaffold_fn=scaffold_fn
        )

    estimator = make_estimator(tmp_path, model_fn)
    estimator.train(train_input_fn, steps=5)
    seen = estimator.evaluate(train_input_fn, steps=1)["hidden"]
    average = estimator.get_variable_value("hidden/ExponentialMovingAverage").sum()
    assert seen == pytest.approx(average, rel=1e-6)
    assert seen != pytest.approx(estimator.get_variable_value("hidden").sum(), rel=1e-6)
