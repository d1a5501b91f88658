import math
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import seq2seq

from .small_decoder import (
    BATCH,
    CELL,
    INPUTS,
    KEYS,
    MEMORY,
    MEMORY_LENGTHS,
    STATE,
    TIME,
    UNITS,
    Cell,
    cell,
    close,
    constants,
    softmax,
    values,
)


def scores_of_luong(query: Any, scale: float) -> Any:
    return scale * np.einsum("nu,ntu->nt", query, MEMORY @ KEYS)


def scores_of_bahdanau(query: Any, norm: float | None) -> Any:
    vector, bias = np.full(UNITS, 0.5), 0.0
    if norm is not None:
        vector, bias = norm * vector / np.sqrt((vector**2).sum()), 0.0
    masked = MEMORY * (np.arange(7) < MEMORY_LENGTHS[:, None])[:, :, None]
    return (vector * np.tanh(masked @ KEYS + (query @ KEYS)[:, None] + bias)).sum(-1)


MECHANISMS = {
    "luong": (seq2seq.LuongAttention, {}, lambda q: scores_of_luong(q, 1.0)),
    "scaled": (seq2seq.LuongAttention, {"scale": True}, lambda q: scores_of_luong(q, 1.0)),
    "bahdanau": (seq2seq.BahdanauAttention, {}, lambda q: scores_of_bahdanau(q, None)),
    "normed": (
        seq2seq.BahdanauAttention,
        {"normalize": True},
        lambda q: scores_of_bahdanau(q, math.sqrt(1 / UNITS)),
    ),
}


@pytest.mark.parametrize("layer", [False, True])
@pytest.mark.parametrize("kind", MECHANISMS)
def test_attends(kind: str, layer: bool) -> None:
    mechanism, options, scores = MECHANISMS[kind]

    def build() -> Any:
        with tf.variable_scope("d", custom_getter=constants):
            memory = mechanism(UNITS, tf.constant(MEMORY), MEMORY_LENGTHS, **options)
            attending = seq2seq.AttentionWrapper(
                Cell(), memory, UNITS if layer else None, alignment_history=True
            )
            state = attending.zero_state(BATCH, tf.float32).clone(cell_state=tf.constant(STATE))
            helper = seq2seq.TrainingHelper(INPUTS, np.full(BATCH, TIME, np.int32))
            decoder = seq2seq.BasicDecoder(attending, helper, state)
            outputs, state, _ = seq2seq.dynamic_decode(decoder)
        return outputs.rnn_output, state.alignment_history.stack(), state.cell_state

    found, history, last = values(build)
    state, attention = STATE, np.zeros_like(STATE)
    for t in range(TIME):
        state = cell(np.concatenate([INPUTS[:, t], attention], -1), state)
        weights = np.where(np.arange(7) < MEMORY_LENGTHS[:, None], scores(state), -np.inf)
        weights = softmax(weights)
        attention = np.einsum("nt,ntu->nu", weights, MEMORY)
        if layer:
            attention = np.concatenate([state, attention], -1) @ CELL[: 2 * UNITS]
        close(found[:, t], attention)
        close(history[t], weights)
    close(last, state)


def test_refuses_units_that_do_not_fit() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="Perhaps you need to set num_units"):
            seq2seq.LuongAttention(UNITS + 1, tf.constant(MEMORY))(tf.constant(STATE), None)
