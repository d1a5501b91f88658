"""Log lines that tools and people look for: the original's words, in the original's places."""

import pathlib
import sys
import warnings

import numpy as np
import pytest
import tensorflow as tf
from support import probing

import tpu_estimator_compat as tpu
from tpu_estimator_compat.checkpoint import latest
from tpu_estimator_compat.hooks.evaluation_events import shown

PROBE = pathlib.Path(__file__).with_name("log_probe.py")


@pytest.mark.slow
@pytest.mark.parity
def test_the_same_lines_in_the_same_order(original, tmp_path):
    expected = original.run(PROBE, "original", tmp_path / "original")
    assert probing.run(sys.executable, PROBE, "ours", tmp_path / "ours") == expected
    text = "\n".join(expected["tpu"])
    assert "_TPUContext: eval_on_tpu True" in text
    assert "training_loop marked as finished" in text
    assert "loss = " not in text.partition("evaluation")[0].replace("global_step", "")
    assert "loss = 11.53, step = 0" in "\n".join(expected["plain"])


def test_results_show_the_digits_of_their_own_dtype():
    assert shown({"loss": np.float32(6.9600205)}) == "loss = 6.9600205"


def test_looking_for_checkpoints_warns_of_nothing(tmp_path, caplog):
    tf.io.gfile.makedirs(str(tmp_path))
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-3"\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert latest(str(tmp_path)) is None
        (tmp_path / "model.ckpt-3.index").write_text("")
        assert latest(str(tmp_path)) == str(tmp_path / "model.ckpt-3")
    assert "deprecated" not in caplog.text


def test_with_use_tpu_the_loss_is_told_with_the_step_after_the_loop(tmp_path, caplog):
    def model_fn(features, labels, mode, params):
        weight = tf.compat.v1.get_variable("weight", initializer=0.0)
        loss = tf.reduce_mean((features * weight - labels) ** 2)
        optimizer = tpu.CrossShardOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.01))
        train_op = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn(params):
        return tf.data.Dataset.from_tensors(([1.0] * 4, [2.0] * 4)).repeat()

    config = tpu.RunConfig(
        model_dir=str(tmp_path), tpu_config=tpu.TPUConfig(5), log_step_count_steps=10
    )
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=4)
    tf.get_logger().propagate = True
    tf.compat.v1.logging.set_verbosity("INFO")
    with caplog.at_level("INFO", logger="tensorflow"):
        estimator.train(input_fn, steps=20)
    steps = [r.getMessage() for r in caplog.records if r.getMessage().startswith("loss = ")]
    assert [line.partition("step = ")[2].split()[0] for line in steps] == ["5", "15"]
