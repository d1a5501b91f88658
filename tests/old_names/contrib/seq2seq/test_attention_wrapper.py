from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import layers
from tpu_estimator_compat.old_names.contrib import seq2seq

from .small_decoder import BATCH, IDS, INPUTS, LENGTHS, MEMORY, UNITS, Cell


def test_variables_have_the_names_of_tensorflow_1() -> None:
    with tf.Graph().as_default():
        with tf.variable_scope("decoder"):
            memories = [
                seq2seq.BahdanauAttention(UNITS, tf.constant(MEMORY), normalize=True),
                seq2seq.LuongMonotonicAttention(UNITS, tf.constant(MEMORY), scale=True),
            ]
            attending = seq2seq.AttentionWrapper(Cell(), memories, [UNITS, UNITS])
            helper = seq2seq.TrainingHelper(INPUTS, LENGTHS)
            state = attending.zero_state(BATCH, tf.float32)
            decoder = seq2seq.BasicDecoder(attending, helper, state, layers.Dense(IDS, name="out"))
            seq2seq.dynamic_decode(decoder)
        names = {variable.op.name for variable in tf.global_variables()}
    scope = "decoder/decoder/attention_wrapper"
    assert names == {
        "decoder/memory_layer/kernel",
        "decoder/memory_layer_1/kernel",
        f"{scope}/bahdanau_attention/query_layer/kernel",
        f"{scope}/bahdanau_attention/attention_v",
        f"{scope}/bahdanau_attention/attention_g",
        f"{scope}/bahdanau_attention/attention_b",
        f"{scope}/luong_monotonic_attention/attention_g",
        f"{scope}/luong_monotonic_attention/attention_score_bias",
        f"{scope}/attention_layer/kernel",
        f"{scope}/attention_layer_1/kernel",
        "decoder/decoder/out/kernel",
        "decoder/decoder/out/bias",
    }


def test_refuses_what_does_not_fit() -> None:
    with tf.Graph().as_default():
        memory = seq2seq.LuongAttention(UNITS, tf.constant(MEMORY))
        with pytest.raises(TypeError, match="not an RNNCell"):
            seq2seq.AttentionWrapper(lambda x: x, memory)
        with pytest.raises(ValueError, match="Only one of attention_layer_size"):
            seq2seq.AttentionWrapper(Cell(), memory, 4, attention_layer=layers.Dense(4))
        with pytest.raises(ValueError, match="exactly one element per"):
            seq2seq.AttentionWrapper(Cell(), memory, [4, 4])
        with pytest.raises(ValueError, match="expected to be same"):
            seq2seq.AttentionWrapper(Cell(), memory).zero_state(BATCH, tf.float32).clone(
                cell_state=tf.zeros([BATCH, UNITS + 1])
            )
