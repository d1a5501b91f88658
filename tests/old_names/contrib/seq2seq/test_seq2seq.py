"""`tf.contrib.seq2seq` as a whole: served names, and a model that trains and predicts."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import Fetching

import tpu_estimator_compat as tpu
from tpu_estimator_compat import layers
from tpu_estimator_compat.old_names.contrib import rnn, seq2seq

from .small_decoder import (
    BATCH,
    CELL,
    END,
    IDS,
    INPUTS,
    KEYS,
    LENGTHS,
    MEMORY,
    MEMORY_LENGTHS,
    OUTPUT,
    STATE,
    TIME,
    UNITS,
    Cell,
    cell,
    close,
    constants,
    projection,
    softmax,
    values,
)


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

    hook = Fetching("sequence_loss/div_no_nan:0")
    trained = estimator(60).train(input_fn, hooks=[hook])
    assert hook.seen[-1] < hook.seen[0] / 2
    found = np.array([p["ids"] for p in estimator(1).predict(input_fn)])
    assert found.shape == (8, TIME, 2)
    assert "model/decoder/attention_wrapper/bahdanau_attention/attention_v" in (
        trained.get_variable_names()
    )


def test_refuses_what_is_no_decoder() -> None:
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="Expected decoder to be type Decoder"):
            seq2seq.dynamic_decode(Cell())


@pytest.mark.parametrize("mode", ["recursive", "parallel", "hard"])
def test_attends_monotonically(mode: str) -> None:
    """At each time that is reached, it stops with a probability, or goes on to the next."""
    random = np.random.RandomState(1)
    stops = random.rand(BATCH, TIME).astype(np.float32)
    previous = softmax(random.randn(BATCH, TIME)).astype(np.float32)
    if mode == "hard":
        stops = np.round(stops)
        previous = np.eye(TIME, dtype=np.float32)[random.randint(0, TIME, BATCH)]
    expected = np.zeros((BATCH, TIME))
    for b, start in itertools.product(range(BATCH), range(TIME)):
        reached = previous[b, start]
        for t in range(start, TIME):
            expected[b, t] += reached * stops[b, t]
            reached *= 1 - stops[b, t]
    found = values(lambda: seq2seq.monotonic_attention(stops, previous, mode))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_traces_beams_back() -> None:
    random = np.random.RandomState(1)
    time, batch, width = 6, 4, 3
    ids = random.randint(0, 5, (time, batch, width))
    parents = random.randint(0, width, (time, batch, width))
    lengths = np.array([6, 3, 0, 5])
    expected = np.full((time, batch, width), END)
    for b, k in itertools.product(range(batch), range(width)):
        beam = k
        for t in reversed(range(lengths[b])):
            expected[t, b, k] = ids[t, b, beam]
            beam = parents[t, b, beam]
        ends = np.flatnonzero(expected[:, b, k] == END)
        if len(ends):
            expected[ends[0] :, b, k] = END
    found = values(
        lambda: seq2seq.gather_tree(
            tf.constant(ids, tf.int32), tf.constant(parents, tf.int32), lengths, END
        )
    )
    assert (found == expected).all()


def test_averages_and_sums_losses() -> None:
    random = np.random.RandomState(1)
    logits = random.randn(BATCH, TIME, IDS).astype(np.float32)
    targets = random.randint(0, IDS, (BATCH, TIME))
    weights = (np.arange(TIME) < LENGTHS[:, None]).astype(np.float32) * 2
    losses = -np.log(np.take_along_axis(softmax(logits), targets[..., None], -1))[..., 0] * weights

    def loss(time: str, batch: str) -> Any:
        options = {
            "average_across_timesteps": time == "average",
            "sum_over_timesteps": time == "sum",
            "average_across_batch": batch == "average",
            "sum_over_batch": batch == "sum",
        }
        return values(
            lambda: seq2seq.sequence_loss(
                tf.constant(logits), tf.constant(targets), tf.constant(weights), **options
            )
        )

    close(loss("average", "average"), losses.sum() / weights.sum())
    close(loss("sum", "sum"), losses.sum() / (weights > 0).sum())
    close(loss("average", "no"), losses.sum(1) / weights.sum(1))
    with np.errstate(invalid="ignore"):
        close(loss("no", "average"), np.nan_to_num(losses.sum(0) / weights.sum(0)))
        close(loss("no", "sum"), np.nan_to_num(losses.sum(0) / (weights > 0).sum(0)))
    close(loss("no", "no"), losses)
    with pytest.raises(ValueError, match="average_across_timesteps and sum_over_timesteps"):
        seq2seq.sequence_loss(
            tf.zeros([1, 1, 1]), tf.zeros([1, 1]), tf.zeros([1, 1]), sum_over_timesteps=True
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


class _Own(seq2seq._BaseAttentionMechanism):
    """Luong's attention, as scripts define a mechanism of their own."""

    def __init__(self, memory, lengths):
        layer = layers.Dense(UNITS, name="memory_layer", use_bias=False)
        super().__init__(
            query_layer=None,
            memory=memory,
            probability_fn=lambda score, _: tf.nn.softmax(score),
            memory_sequence_length=lengths,
            memory_layer=layer,
            score_mask_value=None,
        )

    def __call__(self, query, state):
        with tf.variable_scope(None, "luong_attention", [query]):
            score = seq2seq._luong_score(query, self._keys, None)
            return (self._probability_fn(score, state),) * 2


def test_an_attention_of_its_own():
    def attended(mechanism):
        def build():
            with tf.variable_scope("ones", initializer=tf.ones_initializer()):
                made = mechanism()
            query = tf.constant(INPUTS[:, 0, :1]) * tf.ones([BATCH, UNITS])
            return seq2seq._compute_attention(made, query, None, None)[:2]

        return values(build)

    ours = attended(lambda: _Own(tf.constant(MEMORY), MEMORY_LENGTHS))
    theirs = attended(lambda: seq2seq.LuongAttention(UNITS, tf.constant(MEMORY), MEMORY_LENGTHS))
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-6)


MASKS = {
    "memory_sequence_length": [1, 3],
    "memory_mask": np.array([[True, False, False], [True, True, True]]),
}


class _Bare(seq2seq.AttentionMechanism):
    """It had no abstract names: scripts define what they need."""


def test_names_with_an_underscore():
    def build():
        masked = [
            seq2seq._maybe_mask_score(tf.ones([2, 3]), **{given: value}, score_mask_value=-2.0)
            for given, value in MASKS.items()
        ]
        memory = [
            seq2seq._prepare_memory(tf.ones([2, 3, 1]), **{given: value})
            for given, value in MASKS.items()
        ]
        zeros = seq2seq._create_zero_outputs((4, 2), (tf.float32, tf.int32), 3)
        rows = seq2seq._unstack_ta(seq2seq._transpose_batch_time(tf.ones([2, 3])))
        state = seq2seq.BeamSearchDecoderState(
            (), tf.zeros([1, 2]), tf.zeros([1, 2], tf.bool), tf.zeros([1, 2], tf.int64), ()
        )
        logits = tf.log([[[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]])
        output, _ = seq2seq._beam_search_step(0, logits, (), state, 1, 2, 0, 0.0, 0.0)
        return masked, memory, *zeros, rows.size(), output.predicted_ids, output.parent_ids

    masked, memory, floats, ints, size, ids, parents = values(build)
    for scores, kept in zip(masked, memory, strict=True):
        assert scores.tolist() == [[1, -2, -2], [1, 1, 1]]
        assert kept[:, :, 0].tolist() == [[1, 0, 0], [1, 1, 1]]
    assert (floats.shape, ints.shape, size) == ((3, 4), (3, 2), 3)
    assert (ids.tolist(), parents.tolist()) == ([[2, 0]], [[0, 1]])
    for masks in (seq2seq._maybe_mask_score, seq2seq._prepare_memory):
        with tf.Graph().as_default(), pytest.raises(ValueError, match="at same time"):
            masks(tf.ones([2, 3, 1]), **MASKS)
    assert not hasattr(seq2seq, "_no_such")
    assert isinstance(_Bare(), seq2seq.AttentionMechanism)
