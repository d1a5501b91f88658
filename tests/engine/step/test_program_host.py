"""The host's side of a step: branches and summary writers, and graphs that ignore their input.

`tests/conformance/scenarios/host_side.py` compares it with the original's, live.
"""

from __future__ import annotations

import glob

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.legacy_models import adam, finite_input_fn, logits_of, make_estimator, train_input_fn

import tpu_estimator_compat as tpu

from .host_call_models import model_of


def seen_values(directory):
    """(step, value) of the scalars in all event files of a directory."""
    return [
        (event.step, float(tf.make_ndarray(value.tensor)))
        for path in sorted(glob.glob(f"{directory}/events*"))
        for event in tf.train.summary_iterator(path)
        for value in event.summary.value
    ]


@pytest.mark.parametrize("replicas", [1, 2])
def test_under_keras_a_branch_runs_for_its_effect(tmp_path, strategy, replicas):
    """Nobody wants the result of either branch."""
    seen = []

    def note(step):
        seen.append(int(step))
        return np.int64(0)

    def host_call(step):
        even = tf.equal(step[0] % 2, 0)
        return tf.cond(even, lambda: tf.py_func(note, [step[0]], tf.int64), lambda: step[0])

    estimator = make_estimator(
        tmp_path, model_of(host_call), use_tpu=True, loop=5, train_distribute=strategy(replicas)
    )
    data = train_input_fn({"batch_size": 16})
    estimator.keras_model().fit(data, steps_per_epoch=8, verbose=0)
    assert seen == [2, 4, 6, 8]


def test_writers_of_a_model_fn_are_opened_in_every_mode_of_a_tpu(tmp_path, strategy):
    """As the original's hook that fed the TPU did; there is no host_call."""

    def model_fn(features, labels, mode, params):
        logits = logits_of(features)
        loss = train_op = None
        if mode != tpu.ModeKeys.PREDICT:
            loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
            train_op = adam(loss, params)
        with tf.control_dependencies([logits if train_op is None else train_op]):
            step = tf.train.get_global_step().read_value()
        writer = tf2.summary.create_file_writer(f"{tmp_path}/{mode}", max_queue=1000)
        with writer.as_default(), tf2.summary.record_if(True):
            written = tf2.summary.scalar("seen", tf.cast(step, tf.float32), step=step)
        with tf.control_dependencies([written]):
            logits = tf.identity(logits)
            loss = None if loss is None else tf.identity(loss)
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, predictions={"logits": logits}
        )

    estimator = make_estimator(tmp_path, model_fn, use_tpu=True, train_distribute=strategy(1))
    estimator.train(train_input_fn, steps=3)
    assert seen_values(tmp_path / "train") == [(1, 1.0), (2, 2.0), (3, 3.0)]
    list(estimator.predict(finite_input_fn(32)))
    assert seen_values(tmp_path / "infer") == [(3, 3.0)] * 2


def constant_model_fn(features, labels, mode, params):
    """A model that does not look at its input."""
    step = tf.train.get_global_step()
    return tpu.TPUEstimatorSpec(
        mode,
        loss=tf.constant(2.0),
        train_op=tf.assign_add(step, 1),
        predictions={"step": tf.fill([16], step)},
    )


@pytest.mark.parametrize("use_tpu", [False, True])
def test_calls_end_with_data_that_nobody_looks_at(tmp_path, strategy, use_tpu):
    """The original without a TPU went on for ever; a TPU took an element in every step."""
    estimator = make_estimator(
        tmp_path, constant_model_fn, use_tpu=use_tpu, train_distribute=strategy(1)
    )
    estimator.train(train_input_fn, steps=3)
    assert estimator.evaluate(train_input_fn, steps=2) == {"loss": 2.0, "global_step": 3}
    if not use_tpu:
        assert estimator.evaluate(finite_input_fn(48))["loss"] == 2.0
    assert len(list(estimator.predict(finite_input_fn(48)))) == 48
