from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import seq2seq

from .small_decoder import (
    BATCH,
    END,
    INPUTS,
    OUTPUT,
    STATE,
    TABLE,
    TIME,
    UNITS,
    Cell,
    cell,
    close,
    projection,
    values,
)


def greedy(steps: int) -> tuple[list[list[int]], list[int]]:
    ids, state, tokens = [], STATE, np.full(BATCH, 2)
    lengths, finished = np.zeros(BATCH, int), np.zeros(BATCH, bool)
    for _ in range(steps):
        state = cell(TABLE[tokens], state)
        tokens = np.argmax(state @ OUTPUT, -1)
        ids.append(tokens)
        lengths += ~finished
        finished |= tokens == END
        if finished.all():
            break
    return np.stack(ids, 1).tolist(), lengths.tolist()


@pytest.mark.parametrize("embedding", [TABLE, lambda ids: tf.gather(TABLE, ids)])
def test_feeds_what_it_found(embedding: Any) -> None:
    def build() -> Any:
        helper = seq2seq.GreedyEmbeddingHelper(embedding, tf.fill([BATCH], 2), END)
        decoder = seq2seq.BasicDecoder(Cell(), helper, tf.constant(STATE), projection())
        outputs, _, lengths = seq2seq.dynamic_decode(
            decoder, maximum_iterations=9, output_time_major=True
        )
        return tf.transpose(outputs.sample_id), lengths

    found, lengths = values(build)
    assert (found.tolist(), lengths.tolist()) == greedy(9)


def decoded(helper: Any) -> Any:
    decoder = seq2seq.BasicDecoder(Cell(), helper, tf.constant(STATE), projection())
    outputs, _, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=TIME)
    return outputs


def test_samples_as_scheduled() -> None:
    full = np.full(BATCH, TIME, np.int32)

    def embedding(probability: Any) -> Any:
        helper = seq2seq.ScheduledEmbeddingTrainingHelper(
            INPUTS, full, TABLE, probability, seed=3, scheduling_seed=4
        )
        return decoded(helper)

    trained, never, always = values(
        lambda: (
            decoded(seq2seq.TrainingHelper(INPUTS, full)),
            embedding(0.0),
            embedding(np.ones(BATCH, np.float32)),
        )
    )
    close(never.rnn_output, trained.rnn_output)
    assert (never.sample_id == -1).all()
    assert (always.sample_id >= 0).all()
    state = cell(INPUTS[:, 0], STATE)
    for t in range(1, TIME):
        state = cell(TABLE[always.sample_id[:, t - 1]], state)
        close(always.rnn_output[:, t], state @ OUTPUT)


def test_feeds_outputs_as_scheduled() -> None:
    random = np.random.RandomState(1)
    auxiliary = random.randn(BATCH, TIME, UNITS).astype(np.float32)

    def build() -> Any:
        helper = seq2seq.ScheduledOutputTrainingHelper(
            INPUTS,
            np.full(BATCH, TIME, np.int32),
            1.0,
            next_inputs_fn=lambda outputs: -outputs,
            auxiliary_inputs=auxiliary,
        )
        decoder = seq2seq.BasicDecoder(Cell(), helper, tf.constant(STATE))
        return seq2seq.dynamic_decode(decoder)[0].rnn_output

    found = values(build)
    inputs, state = INPUTS[:, 0], STATE
    for t in range(TIME):
        state = cell(np.concatenate([inputs, auxiliary[:, t]], -1), state)
        close(found[:, t], state)
        inputs = -state


def test_draws_by_the_logits() -> None:
    def draw(temperature: float) -> Any:
        helper = seq2seq.SampleEmbeddingHelper(
            TABLE, tf.fill([BATCH], 2), END, softmax_temperature=temperature, seed=5
        )
        outputs = decoded(helper)
        return outputs.sample_id, tf.argmax(outputs.rnn_output, -1)

    cold, best = values(lambda: draw(1e-4))
    assert (cold == best).all()
    hot, best = values(lambda: draw(100.0))
    assert (hot != best).any()


def test_helpers_of_functions() -> None:
    def build() -> Any:
        custom = seq2seq.CustomHelper(
            lambda: (tf.fill([BATCH], False), tf.constant(INPUTS[:, 0])),
            lambda time, outputs, state: tf.argmax(outputs, -1, output_type=tf.int32),
            lambda time, outputs, state, sample_ids: (
                tf.fill([BATCH], time >= TIME - 1),
                tf.gather(TABLE, sample_ids),
                state,
            ),
        )
        custom.initialize()
        inference = seq2seq.InferenceHelper(
            lambda outputs: outputs, [UNITS], tf.float32, INPUTS[:, 0], lambda s: s[:, 0] > 9
        )
        continuous = seq2seq.BasicDecoder(Cell(), inference, tf.constant(STATE))
        made = seq2seq.dynamic_decode(continuous, maximum_iterations=2)[0].sample_id
        return decoded(custom).sample_id, made

    ids, made = values(build)
    state, inputs = STATE, INPUTS[:, 0]
    for t in range(TIME):
        state = cell(inputs, state)
        assert (ids[:, t] == np.argmax(state @ OUTPUT, -1)).all()
        inputs = TABLE[ids[:, t]]
    first = cell(INPUTS[:, 0], STATE)
    close(made, np.stack([first, cell(first, first)], 1))


def test_refuses_one_start_token() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="start_tokens must be a vector"):
            seq2seq.GreedyEmbeddingHelper(TABLE, 1, END)
