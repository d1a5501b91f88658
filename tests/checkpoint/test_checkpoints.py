"""Checkpoints: file names, what is kept, resuming, warm start, scaffolds, and what cannot fit."""

import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import logits_of, make_estimator, make_model_fn, train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as tf_estimator
from tpu_estimator_compat import layers


def checkpoint_steps(model_dir) -> list[int]:
    names = [n for n in os.listdir(model_dir) if n.endswith(".index")]
    return sorted(int(n.split("-")[1].split(".")[0]) for n in names)


def _gradient_descent(loss, params=None):
    step = tf.train.get_global_step()
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)


def test_files_are_named_as_the_original_named_them(tmp_path):
    make_estimator(tmp_path, save_checkpoints_steps=4).train(train_input_fn, steps=10)
    assert checkpoint_steps(tmp_path) == [0, 4, 8, 10]
    files = os.listdir(tmp_path)
    for step in (0, 4, 8, 10):
        for suffix in ("data-00000-of-00001", "index", "meta"):
            assert f"model.ckpt-{step}.{suffix}" in files
    assert {"checkpoint", "graph.pbtxt"} <= set(files)
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert os.path.basename(state.model_checkpoint_path) == "model.ckpt-10"
    assert 'model_checkpoint_path: "model.ckpt-10"' in (tmp_path / "checkpoint").read_text()


@pytest.mark.parametrize(("keep", "left"), [(2, [8, 10]), (0, [0, 2, 4, 6, 8, 10]), (None, 6)])
def test_keep_checkpoint_max(tmp_path, keep, left):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=2, keep_checkpoint_max=keep)
    estimator.train(train_input_fn, steps=10)
    steps = checkpoint_steps(tmp_path)
    assert steps == left if isinstance(left, list) else len(steps) == left


def test_keep_checkpoint_max_counts_over_calls(tmp_path):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=5, keep_checkpoint_max=3)
    estimator.train(train_input_fn, steps=10)
    estimator.train(train_input_fn, steps=10)
    assert checkpoint_steps(tmp_path) == [10, 15, 20]


def test_no_checkpoints_where_both_limits_are_none(tmp_path):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=None, save_checkpoints_secs=None)
    estimator.train(train_input_fn, steps=3)
    assert estimator.latest_checkpoint() is None
    with pytest.raises(ValueError, match="Could not find trained model in model_dir"):
        estimator.get_variable_names()


def test_save_checkpoints_secs_saves_by_the_clock(tmp_path):
    import time

    class Slow(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            time.sleep(0.4)

    estimator = make_estimator(tmp_path, save_checkpoints_secs=1)
    estimator.train(train_input_fn, hooks=[Slow()], steps=8)
    assert len(checkpoint_steps(tmp_path)) >= 4


@pytest.mark.parametrize("replicas", [1, 2])
def test_resuming_equals_not_stopping(tmp_path, strategy, replicas):
    kwargs = {"use_tpu": True, "train_distribute": strategy(replicas)}
    whole = make_estimator(tmp_path / "whole", **kwargs)
    whole.train(train_input_fn, steps=16)
    parts = make_estimator(tmp_path / "parts", **kwargs)
    parts.train(train_input_fn, steps=8)  # two whole epochs: the input starts anew either way
    again = make_estimator(tmp_path / "parts", **kwargs)
    again.train(train_input_fn, max_steps=16)
    assert whole.get_variable_names() == again.get_variable_names()
    for name in whole.get_variable_names():
        np.testing.assert_array_equal(
            whole.get_variable_value(name), again.get_variable_value(name), err_msg=name
        )


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
            with tf.control_dependencies([_gradient_descent(loss)]):
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


def test_another_shape_in_the_checkpoint_names_variable_and_both_shapes(tmp_path):
    make_estimator(tmp_path).train(train_input_fn, steps=1)
    before = checkpoint_steps(tmp_path)

    def wider(features, labels, mode, params):
        hidden = tf.get_variable("hidden", [4, 9])
        output = tf.get_variable("output", [9, 3])
        logits = tf.matmul(tf.matmul(features, hidden), output)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=_gradient_descent(loss))

    with pytest.raises(ValueError, match=r"'hidden' has shape \(4, 9\).*\(4, 8\) in the check"):
        make_estimator(tmp_path, wider).train(train_input_fn, steps=1)
    assert checkpoint_steps(tmp_path) == before


def test_a_variable_missing_from_the_checkpoint_is_named(tmp_path):
    make_estimator(tmp_path).train(train_input_fn, steps=1)

    def more(features, labels, mode, params):
        extra = tf.get_variable("extra", [], initializer=tf.zeros_initializer())
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features)) + extra
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=_gradient_descent(loss))

    with pytest.raises(tf.errors.NotFoundError, match="Variable 'extra' is not in the checkpoint"):
        make_estimator(tmp_path, more).train(train_input_fn, steps=1)


def test_unreadable_checkpoints_are_an_error_and_are_left_alone(tmp_path):
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, steps=1)
    for step in (0, 1):
        (tmp_path / f"model.ckpt-{step}.index").write_bytes(b"not an index")
    with pytest.raises(tf.errors.DataLossError, match=r"Could not read.*model\.ckpt-1"):
        estimator.train(train_input_fn, steps=1)
    for step in (0, 1):
        assert (tmp_path / f"model.ckpt-{step}.index").read_bytes() == b"not an index"


def test_plain_estimator_shares_checkpoints_with_tpu_estimator(tmp_path):
    def model_fn(features, labels, mode):
        logits = logits_of(features)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == tf_estimator.ModeKeys.EVAL:
            return tf_estimator.EstimatorSpec(
                mode,
                loss=loss,
                eval_metric_ops={"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, -1))},
            )
        return tf_estimator.EstimatorSpec(mode, loss=loss, train_op=_gradient_descent(loss))

    def input_fn():
        return train_input_fn({"batch_size": 16})

    plain = tf_estimator.Estimator(model_fn, model_dir=tmp_path)
    plain.train(input_fn, steps=40)
    expected = plain.evaluate(input_fn, steps=4)
    other = make_estimator(tmp_path, make_model_fn(_gradient_descent))
    result = other.evaluate(train_input_fn, steps=4)
    assert result == expected
    other.train(train_input_fn, steps=2)
    plain.train(input_fn, max_steps=45)
    assert int(plain.get_variable_value("global_step")) == 45
