"""Faults around checkpoints: full disks and vanished files."""

import os
import shutil
import subprocess
import sys

import pytest
from support import TESTS
from support.legacy_models import make_estimator, train_input_fn


def test_a_model_dir_that_was_removed_between_two_calls(tmp_path):
    model_dir = tmp_path / "model"
    make_estimator(model_dir).train(train_input_fn, steps=2)
    shutil.rmtree(model_dir)
    estimator = make_estimator(model_dir)
    estimator.train(train_input_fn, steps=3)
    assert estimator.get_variable_value("global_step") == 3


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
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
make_estimator(sys.argv[1], big, save_checkpoints_steps=4).train(
    train_input_fn, hooks=[Fill()], steps=20)
"""


@pytest.mark.slow
def test_a_disk_that_is_full_leaves_the_last_good_checkpoint(tmp_path):
    """The limit on file sizes stands for the disk: a write fails half-way."""
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
