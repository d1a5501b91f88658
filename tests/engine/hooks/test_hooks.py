"""Hooks of TensorFlow that the conformance tests do not cover, and several replicas."""

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    finite_input_fn,
    logits_of,
    make_estimator,
    make_model_fn,
    train_input_fn,
    training_spec,
)

import tpu_estimator_compat as tpu
from tpu_estimator_compat.estimator import early_stopping, experimental
from tpu_estimator_compat.estimator.early_stopping import read_eval_metrics


def scaled_model_fn(features, labels, mode, params):
    scale = tf.placeholder_with_default(1.0, [], name="scale")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features)) * scale
    if mode == tpu.ModeKeys.EVAL:
        return tpu.TPUEstimatorSpec(mode, loss=loss)
    return training_spec(mode, loss, tf.train.GradientDescentOptimizer(0.1))


class Feeds(tf.train.FeedFnHook):
    def __init__(self, scale):
        super().__init__(lambda: {"scale:0": scale})
        self.losses = []

    def before_run(self, run_context):
        loss = tf.get_collection(tf.GraphKeys.LOSSES)[-1]
        fed = super().before_run(run_context)
        return tf.train.SessionRunArgs(loss, feed_dict=fed.feed_dict)

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results))


@pytest.mark.parametrize("replicas", [None, 1, 2])
@pytest.mark.parametrize("scale", [0.0, 0.5])
def test_what_a_hook_feeds_reaches_the_step(tmp_path, strategy, replicas, scale):
    settings = {"save_checkpoints_steps": 4}
    if replicas:
        settings |= {"use_tpu": True, "loop": 4, "train_distribute": strategy(replicas)}
    estimator = make_estimator(tmp_path, scaled_model_fn, **settings)
    hook = Feeds(scale)
    estimator.train(train_input_fn, hooks=[hook], steps=8)
    first, last = (
        tf.train.load_variable(str(tmp_path / f"model.ckpt-{step}"), "hidden") for step in (0, 8)
    )
    assert len(hook.losses) == (2 if replicas else 8)
    assert estimator.get_variable_value("global_step") == 8
    assert (first == last).all() == (scale == 0)
    assert all(loss == 0 for loss in hook.losses) == (scale == 0)


def test_a_hook_feeds_until_the_data_ends(tmp_path):
    estimator = make_estimator(tmp_path, scaled_model_fn)
    hook = Feeds(0.0)
    estimator.train(finite_input_fn(48), hooks=[hook])
    assert len(hook.losses) == 3
    results = estimator.evaluate(
        finite_input_fn(48), hooks=[tf.train.FeedFnHook(lambda: {"scale:0": 0.0})]
    )
    assert results["loss"] == 0


def test_a_placeholder_that_nobody_feeds_is_named(tmp_path):
    def train_op(loss, params):
        rate = tf.placeholder(tf.float32, [], name="rate")
        return tf.train.GradientDescentOptimizer(rate).minimize(loss, tf.train.get_global_step())

    estimator = make_estimator(tmp_path, make_model_fn(train_op))
    feeds = tf.train.FeedFnHook(lambda: {"rate:0": 0.1})
    estimator.train(train_input_fn, hooks=[feeds], steps=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="rate"):
        estimator.train(train_input_fn, steps=2)


@pytest.mark.parametrize("use_tpu", [False, True])
def test_assigned_variables_reach_all_replicas(tmp_path, strategy, use_tpu):
    class Resets(tf.train.SessionRunHook):
        def begin(self):
            [self.hidden] = [v for v in tf.global_variables() if v.op.name == "hidden"]
            self.reset = tf.assign(self.hidden, tf.zeros_like(self.hidden))

        def after_run(self, run_context, run_values):
            run_context.session.run(self.reset)
            after.append(run_context.session.run(self.hidden))

    after = []
    replicas = 2 if use_tpu else 1
    estimator = make_estimator(
        tmp_path, scaled_model_fn, use_tpu=use_tpu, loop=2, train_distribute=strategy(replicas)
    )
    estimator.train(train_input_fn, hooks=[Resets()], steps=4)
    assert not np.any(after)
    np.testing.assert_array_equal(estimator.get_variable_value("hidden"), 0)


def stop(*unused):
    next(iter(()))


@pytest.mark.parametrize("call", ["train", "evaluate"])
@pytest.mark.parametrize("method", ["begin", "after_create_session", "end"])
def test_a_stop_iteration_reaches_the_caller(tmp_path, call, method):
    hook = type("Stops", (tf.train.SessionRunHook,), {method: stop})()
    with pytest.raises(StopIteration):
        getattr(make_estimator(tmp_path), call)(train_input_fn, hooks=[hook], steps=1)


def test_a_stop_iteration_of_a_listener_or_an_init_fn_reaches_the_caller(tmp_path):
    listener = type("Stops", (tf.train.CheckpointSaverListener,), {"after_save": stop})()
    with pytest.raises(StopIteration):
        make_estimator(tmp_path).train(train_input_fn, saving_listeners=[listener], steps=1)
    scaffold = tf.train.Scaffold(init_fn=stop)
    estimator = make_estimator(tmp_path / "2", make_model_fn(scaffold_fn=lambda: lambda: scaffold))
    with pytest.raises(StopIteration):
        estimator.train(train_input_fn, steps=1)


class EveryTenth(tf.train.SessionRunHook):
    """Notes the global step before and after the last step of its turn."""

    def begin(self):
        self.seen = []
        [hidden] = [v for v in tf.global_variables() if v.op.name == "hidden"]
        self._fetches = [tf.train.get_global_step(), hidden]

    def steps_until_control(self, global_step):
        return 10 - global_step % 10

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context, run_values):
        now = run_context.session.run(self._fetches[0])
        self.seen.append((int(run_values.results[0]), int(now)))


def test_variables_are_read_before_the_last_of_many_steps(tmp_path):
    hook = EveryTenth()
    estimator = make_estimator(tmp_path, log_step_count_steps=None)
    estimator.train(train_input_fn, hooks=[hook], steps=40)
    assert all(now == before + 1 for before, now in hook.seen)
    assert {10, 20, 30, 40} <= {now for _, now in hook.seen}
    assert len(hook.seen) < 20


def test_the_data_may_end_before_the_last_of_many_steps(tmp_path, caplog):
    """Wherever it ends, all steps count and the loss of the last is told."""
    for count in (1, 2, 3, 7, 8, 9):
        estimator = make_estimator(tmp_path / str(count), train_batch_size=4)
        caplog.clear()
        with caplog.at_level("INFO"):
            estimator.train(finite_input_fn(4 * count))
        assert estimator.get_variable_value("global_step") == count
        assert "made no steps" not in caplog.text
        assert "Loss for final step: None" not in caplog.text


@pytest.mark.parametrize(
    ("loop", "every", "told"), [(5, 10, ["5", "15"]), (3, 4, ["3", "9", "15", "20"])]
)
def test_use_tpu_logs_the_loss_with_the_step_after_the_loop(tmp_path, caplog, loop, every, told):
    def model_fn(features, labels, mode, params):
        weight = tf2.compat.v1.get_variable("weight", initializer=0.0)
        loss = tf2.reduce_mean((features * weight - labels) ** 2)
        return training_spec(mode, loss, tf2.compat.v1.train.GradientDescentOptimizer(0.01))

    def input_fn(params):
        return tf2.data.Dataset.from_tensors(([1.0] * 4, [2.0] * 4)).repeat()

    config = tpu.RunConfig(
        model_dir=str(tmp_path), tpu_config=tpu.TPUConfig(loop), log_step_count_steps=every
    )
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=4)
    tf2.get_logger().propagate = True
    tf2.compat.v1.logging.set_verbosity("INFO")
    with caplog.at_level("INFO", logger="tensorflow"):
        estimator.train(input_fn, steps=20)
    steps = [r.getMessage() for r in caplog.records if r.getMessage().startswith("loss = ")]
    assert [line.partition("step = ")[2].split()[0] for line in steps] == told


@pytest.mark.parametrize("use_tpu", [False, True])
def test_the_error_notes_the_step(tmp_path, use_tpu):
    def model_fn(features, labels, mode, params):
        step = tf.train.get_global_step()
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        loss += tf.where(step >= 4, float("nan"), 0.0)
        return training_spec(mode, loss, tf.train.GradientDescentOptimizer(0.1))

    with pytest.raises(tf.train.NanLossDuringTrainingError, match="NaN loss during") as caught:
        make_estimator(tmp_path, model_fn, use_tpu=use_tpu).train(train_input_fn, steps=50)
    [note] = caught.value.__notes__
    assert note.startswith("The loss of step 5 is NaN.")


def test_an_infinite_loss_ends_no_run(tmp_path):
    """A hook gets control when it asked for it, and reads what was before that step."""

    def model_fn(features, labels, mode, params):
        step = tf.train.get_global_step()
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        loss += tf.where(tf.equal(step, 8), float("inf"), 0.0)  # in the last step but one
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    hook = EveryTenth()
    make_estimator(tmp_path, model_fn).train(train_input_fn, hooks=[hook], steps=30)
    assert [before for before, _ in hook.seen] == [0, 2, 9, 19, 29]


def test_events_are_read_by_step_and_damage_is_skipped(tmp_path, caplog):
    estimator = make_estimator(tmp_path)
    assert read_eval_metrics(estimator.eval_dir()) == {}
    results = {}
    for steps in (10, 5):
        estimator.train(train_input_fn, steps=steps)
        one = estimator.evaluate(train_input_fn, steps=2)
        results[int(one["global_step"])] = one
    metrics = read_eval_metrics(estimator.eval_dir())
    assert list(metrics) == [10, 15]
    for step, one in results.items():
        assert metrics[step] == {"accuracy": one["accuracy"], "loss": one["loss"]}
    tf.summary.FileWriterCache.clear()
    [path] = (tmp_path / "eval").iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    with caplog.at_level("WARNING"):
        assert list(read_eval_metrics(estimator.eval_dir())) == [10, 15]
    assert "Skipping rest of the file" in caplog.text


def test_a_worker_stops_once_the_checkpoint_is_written(tmp_path, monkeypatch):
    steps_in_checkpoint = iter([0, 4, 8])
    estimator_lib = early_stopping._hooks.estimator_lib
    monkeypatch.setattr(
        estimator_lib,
        "_load_global_step_from_checkpoint_dir",
        lambda folder: next(steps_in_checkpoint),
    )
    hook = early_stopping._hooks._StopAtCheckpointStepHook(str(tmp_path), 6, 0.01)
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, hooks=[hook], max_steps=50)
    assert estimator.get_variable_value("global_step") == 8  # two steps more, waiting


@pytest.mark.parametrize(("use_tpu", "replicas"), [(False, 1), (True, 1), (True, 2)])
def test_a_function_of_the_users_own_stops(tmp_path, strategy, use_tpu, replicas):
    estimator = make_estimator(tmp_path, use_tpu=use_tpu, train_distribute=strategy(replicas))
    asked = []

    def should_stop():
        asked.append(True)
        return len(asked) == 3

    hook = experimental.make_early_stopping_hook(
        estimator, should_stop, run_every_secs=None, run_every_steps=20
    )
    estimator.train(train_input_fn, hooks=[hook], max_steps=1000)
    assert len(asked) == 3
    assert 40 <= estimator.get_variable_value("global_step") <= 50
    assert estimator.get_variable_value("signal_early_stopping/STOP")
