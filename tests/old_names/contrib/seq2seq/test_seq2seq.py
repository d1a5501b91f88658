"""`tf.contrib.seq2seq` as a whole: served names, and a model that trains and predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat import layers
from tpu_estimator_compat.old_names.contrib import rnn, seq2seq

from .small_decoder import END, IDS, TIME, UNITS


def model_fn(features: Any, labels: Any, mode: Any, params: Any) -> Any:
    """Reverses sequences: trains by their labels, and predicts by a beam search."""
    with tf.variable_scope("model"):
        table = tf.get_variable("table", [IDS, UNITS])
        encoded, state = tf.nn.dynamic_rnn(
            rnn.GRUCell(UNITS), tf.nn.embedding_lookup(table, features), dtype=tf.float32
        )
        width = 1 if mode == tpu.ModeKeys.TRAIN else 2
        encoded, state = seq2seq.tile_batch((encoded, state), width)
        memory = seq2seq.BahdanauAttention(UNITS, encoded)
        attending = seq2seq.AttentionWrapper(rnn.GRUCell(UNITS), memory, UNITS)
        state = attending.zero_state(params["batch_size"] * width, tf.float32).clone(
            cell_state=state
        )
        output = layers.Dense(IDS, name="output")
        start = tf.fill([params["batch_size"]], 2)
        if mode == tpu.ModeKeys.PREDICT:
            search = seq2seq.BeamSearchDecoder(attending, table, start, END, state, width, output)
            outputs, _, _ = seq2seq.dynamic_decode(search, maximum_iterations=TIME)
            return tpu.TPUEstimatorSpec(mode, predictions={"ids": outputs.predicted_ids})
        given = tf.concat([start[:, tf.newaxis], labels[:, :-1]], 1)
        helper = seq2seq.TrainingHelper(
            tf.nn.embedding_lookup(table, given), tf.fill([params["batch_size"]], TIME)
        )
        decoder = seq2seq.BasicDecoder(attending, helper, state, output)
        outputs, _, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=TIME)
    loss = seq2seq.sequence_loss(outputs.rnn_output, labels, tf.ones([params["batch_size"], TIME]))
    optimizer = tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.05))
    return tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step())
    )


def test_trains_and_predicts_in_an_estimator(tmp_path: Any) -> None:
    def input_fn(params: Any) -> Any:
        ids = np.random.RandomState(1).randint(2, IDS, (8, TIME)).astype(np.int32)
        data = tf.data.Dataset.from_tensor_slices((ids, ids[:, ::-1].copy()))
        return data.repeat(params["epochs"]).batch(params["batch_size"], drop_remainder=True)

    def estimator(epochs: int) -> Any:
        return tpu.TPUEstimator(
            model_fn,
            model_dir=str(tmp_path),
            config=tpu.RunConfig(tf_random_seed=1),
            params={"epochs": epochs},
            use_tpu=False,
            train_batch_size=8,
            predict_batch_size=4,
        )

    losses: list[float] = []

    class Watch(tf.train.SessionRunHook):
        def before_run(self, run_context: Any) -> Any:
            return tf.train.SessionRunArgs(
                run_context.session.graph.get_tensor_by_name("sequence_loss/div_no_nan:0")
            )

        def after_run(self, run_context: Any, run_values: Any) -> None:
            losses.append(float(run_values.results))

    trained = estimator(60).train(input_fn, hooks=[Watch()])
    assert losses[-1] < losses[0] / 2
    found = np.array([p["ids"] for p in estimator(1).predict(input_fn)])
    assert found.shape == (8, TIME, 2)
    assert "model/decoder/attention_wrapper/bahdanau_attention/attention_v" in (
        trained.get_variable_names()
    )
