from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import seq2seq

from .small_decoder import (
    INPUTS,
    LENGTHS,
    OUTPUT,
    STATE,
    TIME,
    Cell,
    cell,
    close,
    projection,
    values,
)


@pytest.mark.parametrize("impute", [False, True])
def test_reads_the_inputs_of_training(impute: bool) -> None:
    def build() -> Any:
        helper = seq2seq.TrainingHelper(INPUTS, LENGTHS)
        decoder = seq2seq.BasicDecoder(Cell(), helper, tf.constant(STATE), projection())
        return seq2seq.dynamic_decode(decoder, impute_finished=impute)

    outputs, state, lengths = values(build)
    states, expected = STATE, []
    last = np.zeros_like(STATE)
    for t in range(TIME):
        # The inputs are read, whatever the lengths.
        states = cell(INPUTS[:, t], states)
        last = np.where((t < LENGTHS)[:, None], states, last)
        expected.append(states @ OUTPUT)
    logits = np.stack(expected, 1)
    counts = (np.arange(TIME) < LENGTHS[:, None])[:, :, None]
    close(outputs.rnn_output, np.where(counts, logits, 0) if impute else logits)
    close(state, last if impute else states)
    assert (lengths == LENGTHS).all()
    ids = np.argmax(logits, -1)
    assert (outputs.sample_id == (np.where(counts[..., 0], ids, 0) if impute else ids)).all()


def test_refuses_a_helper_that_is_none() -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match="helper must be a Helper"):
        seq2seq.BasicDecoder(Cell(), None, tf.constant(STATE))
