import os
import shutil

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, make_model_fn, train_input_fn

from tpu_estimator_compat.engine.checkpoint.writing import CheckpointWrite


def test_a_session_that_breaks_goes_on_from_the_last_save(tmp_path):
    class Breaks(tf.train.SessionRunHook):
        def begin(self):
            self.step = tf.train.get_global_step()

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(self.step)

        def after_run(self, run_context, run_values):
            seen.append(int(run_values.results))
            if len(seen) == 3:
                raise tf.errors.AbortedError(None, None, "gone")

    seen = []
    estimator = make_estimator(tmp_path, save_checkpoints_steps=2)
    estimator.train(train_input_fn, hooks=[Breaks()], steps=5)
    assert seen == [0, 1, 2, 2, 3, 4]


class ReadEveryStep(tf.train.SessionRunHook):
    def begin(self):
        self.seen = {}
        self._variables = tf.global_variables()

    def after_run(self, run_context, run_values):
        values = run_context.session.run({v.op.name: v for v in self._variables})
        self.seen[int(values["global_step"])] = values


def check_against(model_dir, seen, steps):
    for step in steps:
        reader = tf.train.load_checkpoint(f"{model_dir}/model.ckpt-{step}")
        for name, value in seen[step].items():
            np.testing.assert_array_equal(reader.get_tensor(name), value, err_msg=f"{step} {name}")


def embedding(loss, params):
    """Adam, after a lookup of a few rows with momentum: updates of both kinds, dense and sparse."""
    table = tf.get_variable("table", [50, 4])
    rows = tf.nn.embedding_lookup(table, [1, 3])
    step = tf.train.get_global_step()
    first = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(rows**2), var_list=[table])
    with tf.control_dependencies([first]):
        return tf.train.AdamOptimizer(0.1).minimize(loss, step)


@pytest.mark.parametrize(("train_op", "jit"), [(None, False), (None, True), (embedding, False)])
def test_saves_hold_the_step_that_they_name(tmp_path, train_op, jit):
    read = ReadEveryStep()
    estimator = make_estimator(
        tmp_path, make_model_fn(train_op), save_checkpoints_steps=4, jit_compile=jit
    )
    estimator.train(train_input_fn, hooks=[read], steps=14)
    check_against(tmp_path, read.seen, (4, 8, 12, 14))


@pytest.mark.parametrize("replicas", [1, 2])
def test_saves_with_tpu_semantics(tmp_path, strategy, replicas):
    read = ReadEveryStep()
    estimator = make_estimator(
        tmp_path,
        use_tpu=True,
        loop=4,
        save_checkpoints_steps=4,
        train_distribute=strategy(replicas),
    )
    estimator.train(train_input_fn, hooks=[read], steps=12)
    check_against(tmp_path, read.seen, (4, 8, 12))


class Look(tf.train.SessionRunHook, tf.train.CheckpointSaverListener):
    """Notes the step of the newest checkpoint wherever the original calls user code."""

    def __init__(self, model_dir):
        self.model_dir, self.found = str(model_dir), []

    def look(self, *unused):
        path = tf.train.latest_checkpoint(self.model_dir)
        assert not [n for n in os.listdir(self.model_dir) if n.startswith(".")]
        self.found.append(int(tf.train.load_variable(path, "global_step")))

    def begin(self):
        """There is nothing yet."""

    after_create_session = after_run = after_save = look

    def end(self, *unused):
        self.look()


@pytest.mark.parametrize("how", ["hooks", "saving_listeners"])
def test_whoever_looks_finds_the_newest_checkpoint(tmp_path, how):
    look = Look(tmp_path)
    estimator = make_estimator(tmp_path, save_checkpoints_steps=2)
    estimator.train(train_input_fn, steps=5, **{how: [look]})
    by_hook = [0, 0, 2, 2, 4, 4, 5]
    assert look.found == (by_hook if how == "hooks" else [0, 2, 4, 5, 5])


def test_leftovers_of_killed_saves_are_swept(tmp_path):
    leftover = tmp_path / ".model.ckpt-7.unfinished-0123abcd"
    leftover.mkdir(parents=True)
    (leftover / "model.ckpt-7.data-00000-of-00001").write_bytes(b"x" * 100)
    make_estimator(tmp_path).train(train_input_fn, steps=3)
    assert [n for n in os.listdir(tmp_path) if n.startswith(".")] == []


def test_a_write_that_fails_ends_training_with_its_error(tmp_path, monkeypatch):
    write = CheckpointWrite.__call__

    def fail(self, values):
        [name] = (v.item() for v in values)
        if name.endswith("-2"):
            raise tf.errors.ResourceExhaustedError(None, None, f"No space left for {name}")
        return write(self, values)

    monkeypatch.setattr(CheckpointWrite, "__call__", fail)
    estimator = make_estimator(tmp_path, save_checkpoints_steps=2)
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"No space left.*model\.ckpt-2"):
        estimator.train(train_input_fn, steps=10)
    assert estimator.latest_checkpoint().endswith("model.ckpt-0")


def test_a_write_is_finished_where_training_fails(tmp_path):
    class Fail(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            if run_context.session.run(tf.train.get_global_step()) >= 5:
                raise KeyError("a mistake")

    estimator = make_estimator(tmp_path, save_checkpoints_steps=5)
    with pytest.raises(KeyError):
        estimator.train(train_input_fn, hooks=[Fail()], steps=10)
    assert estimator.latest_checkpoint().endswith("model.ckpt-5")
    assert estimator.get_variable_value("global_step") == 5


def test_a_model_dir_that_vanished(tmp_path):
    model_dir = tmp_path / "model"

    class Remove(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            shutil.rmtree(model_dir, ignore_errors=True)

    estimator = make_estimator(model_dir, save_checkpoints_steps=5)
    with pytest.raises(ValueError, match=r"Parent directory of .*model\.ckpt doesn't exist"):
        estimator.train(train_input_fn, hooks=[Remove()], steps=20)
