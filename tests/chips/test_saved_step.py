"""A saved step runs where only JAX is, and compares itself with the CPU that saved it."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.installations import newest_jax
from support.jax_estimators import on
from support.legacy_models import make_model_fn, train_input_fn

import tpu_estimator_compat as tpu
from chips import saved_step
from chips.saved_step import SavesStep
from tpu_estimator_compat import layers

WITHOUT_TENSORFLOW = """
import runpy, sys
sys.modules["tensorflow"] = sys.modules["tpu_estimator_compat"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def saved(tmp_path, model_fn):
    folder = tmp_path / "step"
    estimator = on("jax", 1, tmp_path / "model", model_fn)
    estimator.train(train_input_fn, max_steps=1, hooks=[SavesStep(folder)])
    return folder


def ran(folder, python=sys.executable, status=0):
    done = subprocess.run(
        [python, "-c", WITHOUT_TENSORFLOW, str(folder / "run_step.py"), "--seconds=0.1"],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == status, done.stderr
    return json.loads((folder / "result.json").read_text())


@pytest.mark.slow
def test_a_chip_that_computes_something_else_is_found_out(tmp_path, monkeypatch):
    monkeypatch.setattr(saved_step, "SMALL", 64)
    folder = saved(tmp_path, make_model_fn())
    assert len(json.loads((folder / "step.json").read_text())["drawn"]) == 7
    found = ran(folder)
    assert max(found["highest"]["loss"], found["highest"]["variables"]) < 1e-5
    assert found["steps_per_second"] > 0
    values = dict(np.load(folder / "values.npz"))
    values["feed 1"] = 1 - values["feed 1"]
    np.savez(folder / "values.npz", **values)
    assert ran(folder, status=1)["highest"]["loss"] > 1e-3


def zero_gradient_model_fn(features, labels, mode, params):
    """As in an attention layer, a bias changes nothing but rounding errors."""
    del params
    bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
    logits = layers.dense(features, 3, name="dense") + bias
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tpu.CrossShardOptimizer(tf.train.AdamOptimizer(1e-2))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.mark.slow
def test_rounding_errors_do_not_count_as_differences(tmp_path):
    folder = saved(tmp_path, zero_gradient_model_fn)
    reference = json.loads((folder / "reference.json").read_text())
    reference["after"]["bias"] = [10 * value for value in reference["after"]["bias"]]
    (folder / "reference.json").write_text(json.dumps(reference))
    assert ran(folder)["noisy_variables"] == 3  # the bias and its slots
    reference["noise"]["bias"] = 0.0
    (folder / "reference.json").write_text(json.dumps(reference))
    assert ran(folder, status=1)["highest"]["worst"] == "bias"


@pytest.mark.full  # which has the environment
def test_the_newest_jax_reads_what_the_oldest_has_written(tmp_path):
    ran(saved(tmp_path, make_model_fn()), str(newest_jax().home / "bin" / "python"))
