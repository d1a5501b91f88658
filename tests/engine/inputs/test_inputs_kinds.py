"""Features that are no dense numbers, all the way through an estimator: sparse, ragged, strings."""

import functools

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator

WORDS = ["red", "green", "blue"]


def model_fn(features, labels, mode, params):
    """A bag of words: a table in model_fn, a sparse lookup, ragged lengths."""
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(WORDS, np.arange(3, dtype=np.int64)), -1
    )
    embedding = tf.get_variable("embedding", [4, 2], initializer=tf.ones_initializer())
    first = tf.nn.embedding_lookup(embedding, table.lookup(features["word"]) + 1)
    bag = tf.nn.embedding_lookup_sparse(embedding, features["ids"], None, combiner="sum")
    lengths = tf.cast(features["tokens"].row_lengths(), tf.float32)
    logit = tf.reduce_sum(first + bag, axis=1) * 0.1 + 0.01 * lengths
    if mode == tpu.ModeKeys.PREDICT:
        predictions = {"logit": logit, "word": features["word"]}
        return estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.mean_squared_error(labels, logit)
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss, step)
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def rows(batch_size):
    words = np.array(WORDS * 8)
    dataset = tf2.data.Dataset.from_tensor_slices(
        (
            {
                "word": words,
                "ids": tf2.sparse.from_dense(np.eye(4, dtype=np.int64)[np.arange(24) % 4]),
                "tokens": tf2.ragged.constant([["a"] * (i % 3) for i in range(24)]),
            },
            (words == "blue").astype(np.float32),
        )
    )
    return dataset.batch(batch_size)


class CallableInput:
    """An input_fn that is an object, with an argument of its own bound by `partial`."""

    def __call__(self, repeat, params, mode):
        assert mode in (tpu.ModeKeys.TRAIN, tpu.ModeKeys.EVAL, tpu.ModeKeys.PREDICT)
        dataset = rows(params["rows"])
        return dataset.repeat() if repeat else dataset


@pytest.mark.parametrize("replicas", [1, 2])
def test_sparse_ragged_and_strings(tmp_path, strategy, replicas):
    config = estimator.RunConfig(
        str(tmp_path), train_distribute=strategy(2) if replicas == 2 else None, save_summary_steps=0
    )
    est = estimator.Estimator(model_fn, config=config, params={"rows": 6})
    before = est.evaluate(functools.partial(CallableInput(), False))
    est.train(functools.partial(CallableInput(), True), steps=60)
    after = est.evaluate(functools.partial(CallableInput(), False))
    assert after["loss"] < 0.5 * before["loss"]
    found = list(est.predict(functools.partial(CallableInput(), False)))
    assert [p["word"].decode() for p in found] == WORDS * 8
    by_word = {w: np.mean([p["logit"] for p in found if p["word"].decode() == w]) for w in WORDS}
    assert max(by_word, key=by_word.get) == "blue"
