"""A saved step runs where only JAX is, and compares itself with TensorFlow."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.installations import newest_jax
from support.jax_estimators import on
from support.legacy_models import train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat import layers
from tpu_estimator_compat.tools.preflight import step_folder
from tpu_estimator_compat.tools.preflight.step_saving import save_step

WITHOUT_TENSORFLOW = """
import runpy, sys
sys.modules["tensorflow"] = sys.modules["tpu_estimator_compat"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def model_fn(features, labels, mode, params):
    """A classifier, perhaps with dropout, whose second layer may be of bfloat16."""
    hidden = layers.dense(features, 64, tf.tanh, name="first")
    hidden = layers.dropout(hidden, params.get("rate", 0.0), training=True)
    scale = tf.get_variable("scale", [64], params.get("dtype", tf.float32), tf.ones_initializer())
    logits = layers.dense(hidden * tf.cast(scale, tf.float32), 3, name="second")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tpu.CrossShardOptimizer(tf.train.MomentumOptimizer(0.1, 0.9))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def saved(
    tmp_path, input_fn=train_input_fn, largest=2**20, model=model_fn, **params
) -> pathlib.Path:
    estimator = on("tensorflow", 1, tmp_path / "model", model, params=params)
    return save_step(
        estimator,
        input_fn,
        str(tmp_path / "step"),
        largest=largest,
        platforms=("cpu", "cuda", "tpu"),
        estimates={"v5e:1x1": 2**20},
    )


def ran(script: pathlib.Path, python: str = sys.executable, status: int = 0) -> dict:
    done = subprocess.run(
        [python, "-c", WITHOUT_TENSORFLOW, str(script), "--seconds=0.1"],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        cwd=script.parent.parent,
    )
    assert done.returncode == status, done.stderr
    found = json.loads((script.parent / "result.json").read_text())
    assert f"{found['highest']['loss']:.1e} (losses)" in done.stdout
    return found


def close(found: dict, bound: float = 1e-5) -> bool:
    return max(found["highest"]["loss"], found["highest"]["variables"]) < bound


def test_what_runs_is_what_tensorflow_computed(tmp_path):
    script = saved(tmp_path)
    assert not (tmp_path / "model").exists() or not list((tmp_path / "model").glob("model.ckpt*"))
    found = ran(script)
    assert close(found)
    assert found["reference"] == "TensorFlow on the CPU"
    assert found["steps_per_second"] > 0
    assert found["compile_seconds"]["without"] > 0
    assert found["estimates"] == {"v5e:1x1": 2**20}


@pytest.mark.slow
def test_large_values_are_drawn_and_the_folder_stays_small(tmp_path, monkeypatch):
    monkeypatch.setattr(step_folder, "_SMALL", 0)
    script = saved(tmp_path, largest=0)
    described = json.loads((script.parent / "step.json").read_text())
    assert not all(value["saved"] for value in described["variables"])
    assert [value["saved"] for value in described["feeds"]] == [False, True]  # labels are integers
    assert close(ran(script))


@pytest.mark.slow
def test_a_step_with_dropout_is_compared_with_jaxs_cpu(tmp_path):
    found = ran(saved(tmp_path, rate=0.5))
    assert found["reference"] == "JAX on the CPU"
    assert close(found)


@pytest.mark.slow
def test_values_of_bfloat16(tmp_path):
    assert close(ran(saved(tmp_path, dtype=tf.bfloat16)), 1e-2)


@pytest.mark.slow
def test_a_chip_that_computes_something_else_is_found_out(tmp_path):
    """As one that loses a part of the input would."""
    script = saved(tmp_path)
    values = dict(np.load(script.parent / "values.npz"))
    values["feed0"][:, :4] = 0
    np.savez(script.parent / "values.npz", **values)
    assert not close(ran(script, status=1), 1e-3)


@pytest.mark.full  # which has the environment
def test_the_newest_jax_reads_what_the_oldest_has_written(tmp_path):
    assert close(ran(saved(tmp_path), str(newest_jax().home / "bin" / "python")))


def test_data_for_less_than_two_steps(tmp_path):
    with pytest.raises(ValueError, match="The data ended before 2 steps"):
        saved(tmp_path, lambda params: train_input_fn(params).take(1))


def test_a_folder_with_files_is_left_alone(tmp_path):
    (tmp_path / "step").mkdir()
    (tmp_path / "step" / "mine").touch()
    with pytest.raises(FileExistsError, match="Name a new folder"):
        saved(tmp_path)
    assert [path.name for path in (tmp_path / "step").iterdir()] == ["mine"]


def zero_gradient_model_fn(features, labels, mode, params):
    """As in an attention layer, a bias changes nothing but rounding errors."""
    del params
    bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
    logits = layers.dense(features, 3, name="dense") + bias
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tpu.CrossShardOptimizer(tf.train.AdamOptimizer(1e-2))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def test_rounding_errors_do_not_count_as_differences(tmp_path):
    script = saved(tmp_path, model=zero_gradient_model_fn)
    found = ran(script)
    assert found["noisy_variables"] == 3  # the bias and its slots
    assert close(found)
    described = json.loads((script.parent / "step.json").read_text())
    described["noise"] = dict.fromkeys(described["noise"], 0.0)
    (script.parent / "step.json").write_text(json.dumps(described))
    assert not close(ran(script, status=1))
