"""The beam search of `tf.contrib.seq2seq` finds what a search in NumPy finds, beam by beam."""

from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import seq2seq

from .small_decoder import (
    BATCH,
    END,
    IDS,
    KEYS,
    MEMORY,
    MEMORY_LENGTHS,
    OUTPUT,
    STATE,
    TABLE,
    UNITS,
    Cell,
    cell,
    close,
    constants,
    projection,
    softmax,
    values,
)


def beam_search(width: int, steps: int, weight: float, coverage: float = 0.0) -> tuple[Any, Any]:
    """Ids [batch, time, beams] and scores of the last step [batch, beams], beam by beam.

    With a coverage, cells attend to `MEMORY`.
    """
    ids, scores = [], []
    for b in range(BATCH):
        memory = MEMORY[b, : MEMORY_LENGTHS[b]]
        none = np.zeros(UNITS)
        beams = [([], (STATE[b], none, np.zeros(len(memory))), 0.0, False, 0)]
        for _ in range(steps):
            grown = []
            for tokens, (state, attention, attended), log_prob, finished, length in beams:
                inputs = TABLE[tokens[-1] if tokens else 2]
                inputs = np.concatenate([inputs, attention]) if coverage else inputs
                state = cell(inputs, state)
                weights = softmax(memory @ KEYS @ state)
                after = state, weights @ memory, attended + weights * (not finished)
                logs = np.log(softmax(state @ OUTPUT))
                for i in range(IDS):
                    if finished and i != END:
                        continue
                    total = log_prob if finished else log_prob + logs[i]
                    counted = length + (not finished and i != END)
                    score = total / ((5 + counted) / 6) ** weight
                    if finished:
                        score += coverage * np.log(np.minimum(after[2], 1)).sum()
                    longer = length + (not finished)
                    grown.append(
                        (score, ([*tokens, i], after, total, finished or i == END, longer))
                    )
            grown.sort(key=lambda scored: -scored[0])
            beams = [beam for _, beam in grown[:width]]
        ids.append(np.array([tokens for tokens, *_ in beams]).T)
        scores.append([score for score, _ in grown[:width]])
    return np.array(ids), np.array(scores)


@pytest.mark.parametrize(("weight", "coverage"), [(0.0, 0.0), (1.0, 0.0), (0.5, 0.2)])
def test_searches_beams(weight: float, coverage: float) -> None:
    width, steps = 3, 4

    def build() -> Any:
        state, searching = seq2seq.tile_batch(tf.constant(STATE), width), Cell()
        with tf.variable_scope("d", custom_getter=constants):
            if coverage:
                memory, lengths = seq2seq.tile_batch((MEMORY, MEMORY_LENGTHS), width)
                mechanism = seq2seq.LuongAttention(UNITS, memory, lengths)
                searching = seq2seq.AttentionWrapper(
                    Cell(), mechanism, output_attention=False, initial_cell_state=state
                )
                state = searching.zero_state(BATCH * width, tf.float32)
        decoder = seq2seq.BeamSearchDecoder(
            searching,
            TABLE,
            tf.fill([BATCH], 2),
            END,
            state,
            width,
            projection(),
            length_penalty_weight=weight,
            coverage_penalty_weight=coverage,
        )
        outputs, _, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=steps)
        return outputs.predicted_ids, outputs.beam_search_decoder_output.scores[:, -1]

    ids, scores = values(build)
    expected_ids, expected_scores = beam_search(width, steps, weight, coverage)
    assert (ids == expected_ids).all()
    close(scores, expected_scores)


def test_keeps_what_beams_attended_to() -> None:
    """A memory of one time has all of the weight."""
    width = 2

    def build() -> Any:
        with tf.variable_scope("d", custom_getter=constants):
            memory = seq2seq.LuongAttention(
                UNITS, seq2seq.tile_batch(tf.constant(MEMORY[:, :1]), width)
            )
            attending = seq2seq.AttentionWrapper(Cell(), memory, UNITS, alignment_history=True)
            decoder = seq2seq.BeamSearchDecoder(
                attending,
                TABLE,
                tf.fill([BATCH], 2),
                END,
                attending.zero_state(BATCH * width, tf.float32),
                width,
                projection(),
            )
            outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=4)
        return outputs.predicted_ids, state.cell_state.alignment_history

    ids, history = values(build)
    close(history, np.ones((ids.shape[1], BATCH * width, 1)))
