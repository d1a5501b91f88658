import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support import TESTS
from support.legacy_models import (
    gradient_descent,
    logits_of,
    make_estimator,
    make_model_fn,
    train_input_fn,
)

from tpu_estimator_compat import estimator as tf_estimator
from tpu_estimator_compat import layers
from tpu_estimator_compat.engine.checkpoint import saving

from .files import checkpoint_steps


def test_save_checkpoints_secs_saves_by_the_clock(tmp_path, monkeypatch):
    class Slow(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            now[0] += 0.4

    now = [1_700_000_000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
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
        return tf_estimator.EstimatorSpec(mode, loss=loss, train_op=gradient_descent(loss))

    def input_fn():
        return train_input_fn({"batch_size": 16})

    plain = tf_estimator.Estimator(model_fn, model_dir=tmp_path)
    plain.train(input_fn, steps=40)
    expected = plain.evaluate(input_fn, steps=4)
    other = make_estimator(tmp_path, make_model_fn(gradient_descent))
    result = other.evaluate(train_input_fn, steps=4)
    assert result == expected
    other.train(train_input_fn, steps=2)
    plain.train(input_fn, max_steps=45)
    assert int(plain.get_variable_value("global_step")) == 45


FULL_DISK = f"""
import resource, signal, sys, time
sys.path[:0] = [{str(TESTS)!r}]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import tensorflow.compat.v1 as tf
from support.legacy_models import *
def big(features, labels, mode, params):
    spec = make_model_fn()(features, labels, mode, params)
    tf.get_variable("big", [1000, 1000], initializer=tf.zeros_initializer())
    return spec
class Fill(tf.train.SessionRunHook):
    def after_run(self, context, values):
        if context.session.run(tf.train.get_global_step()) == 6:
            while not tf.train.latest_checkpoint(sys.argv[1]).endswith("-4"):
                time.sleep(0.01)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
make_estimator(sys.argv[1], big, save_checkpoints_steps=4).train(
    train_input_fn, hooks=[Fill()], steps=20)
"""


@pytest.mark.slow
def test_a_disk_that_is_full_leaves_the_last_good_checkpoint(tmp_path):
    """The limit on file sizes stands for the disk: a write fails half-way. Events fit."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1, done.stderr[-2000:]
    assert "Could not write a checkpoint; those written before are intact" in done.stderr
    assert "model.ckpt-8: " in done.stderr
    assert "See that the disk has room" in done.stderr
    traceback = done.stderr.rpartition("Traceback (most recent call last):")[2]
    assert "tpu_estimator_compat/" not in traceback
    assert [n for n in os.listdir(tmp_path) if n.startswith(".")] == []
    estimator = make_estimator(tmp_path)
    assert estimator.latest_checkpoint().endswith("model.ckpt-4")
    assert int(estimator.get_variable_value("global_step")) == 4
    assert estimator.get_variable_value("big").shape == (1000, 1000)


def test_files_move_only_when_all_are_complete(tmp_path):
    def fail():
        with saving.appearing_at_once(f"{tmp_path}/a") as prefix:
            pathlib.Path(f"{prefix}.index").write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert os.listdir(tmp_path) == []
    with saving.appearing_at_once(f"{tmp_path}/a") as prefix:
        pathlib.Path(f"{prefix}.index").write_text("whole")
        assert not (tmp_path / "a.index").exists()
    assert (tmp_path / "a.index").read_text() == "whole"


def test_init_from_checkpoint_of_layers(tmp_path):
    """Their first initializers, which lie in the code of layers, are not updates of theirs."""

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
