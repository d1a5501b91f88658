import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import on
from support.legacy_models import adam, finite_input_fn, logits_of, make_model_fn, train_input_fn

import tpu_estimator_compat as tpu


def test_a_host_call_that_writes_a_variable_is_heard(tmp_path):
    """The next step sees what it wrote."""

    def train_op(loss, params):
        rate = tf.get_variable("rate", [], initializer=tf.zeros_initializer(), trainable=False)
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer(), trainable=False)
        optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
        minimized = optimizer.minimize(loss, tf.train.get_global_step())
        return tf.group(minimized, total.assign_add(rate))

    def host_call(step):
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            rate = tf.get_variable("rate", [])
        return rate.assign(tf.cast(step[0], tf.float32) + 1.0)

    def spec_of():
        return host_call, [tf.reshape(tf.train.get_global_step(), [1])]

    estimator = on("jax", 2, tmp_path, make_model_fn(train_op, host_call=spec_of))
    estimator.train(train_input_fn, max_steps=4)
    rate, total = (estimator.get_variable_value(n) for n in ("rate", "total"))
    assert rate in (4.0, 5.0)  # of the step before or after it was raised
    assert total == sum([rate - 3, rate - 2, rate - 1])  # those of the three steps before


@pytest.mark.parametrize("every", [1, 3])
def test_host_calls_in_order(tmp_path, every):
    """One for each step, or for every so manieth of a loop, with all replicas' tensors."""
    seen = []

    def model_fn(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        train_op = adam(loss, params)
        with tf.control_dependencies([train_op]):
            step = tf.reshape(tf.train.get_global_step().read_value(), [1])

        def host_call(step, rows):
            note = tf.py_func(lambda s, r: seen.append((s.tolist(), len(r))), [step, rows], [])
            return [note, tf.no_op()]

        call = (host_call, [step, features])
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=call)

    config = {"iterations_per_loop": 5, "experimental_host_call_every_n_steps": every}
    on("jax", 2, tmp_path, model_fn, tpu_config=config).train(train_input_fn, steps=12)
    steps = range(1, 13) if every == 1 else (1, 4, 6, 9, 11)
    assert seen == [([n, n], 16) for n in steps]


def worded_model_fn(features, labels, mode, params):
    """Predictions that are strings, and numbers that a host makes of strings."""
    best = tf.argmax(logits_of(features), -1)
    names = tf.constant(["none", "one", "two"])
    keys = tf.lookup.KeyValueTensorInitializer(["none", "one", "two"], np.arange(3) * 10)
    table = tf.lookup.StaticHashTable(keys, -1)
    words = tf.gather(names, best)
    predictions = {
        "class": best,
        "word": words,
        "tens": table.lookup(words),
        "joined": tf.strings.join([words, tf.as_string(best)], "-"),
        "sum": tf.reduce_sum(features, -1),
    }
    return tpu.TPUEstimatorSpec(mode, predictions=predictions)


@pytest.mark.parametrize("replicas", [pytest.param(1, marks=pytest.mark.full), 4])
def test_strings_and_tables_after_a_prediction(tmp_path, replicas):
    estimator = on("jax", replicas, tmp_path, worded_model_fn)
    rows = list(estimator.predict(finite_input_fn(21)))
    assert len(rows) == 21
    for row in rows:
        word = ["none", "one", "two"][row["class"]]
        assert row["word"] == word.encode()
        assert row["tens"] == 10 * row["class"]
        assert row["joined"] == f"{word}-{row['class']}".encode()


def test_host_predictions_wait_for_devices_and_repeat_no_work(tmp_path):
    """What it waits for is the input, and a variable that counts the steps."""

    def model_fn(features, labels, mode, params):
        made = tf.get_variable("made", [], tf.int32, tf.zeros_initializer(), trainable=False)
        with tf.control_dependencies([features, made.assign_add(1)]):
            word = tf.py_func(lambda: np.array([b"word"] * 4, object), [], tf.string)
        word.set_shape([4])
        predictions = {"word": word, "made": tf.fill([4], made.read_value())}
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)

    estimator = on("jax", 1, tmp_path, model_fn, predict_batch_size=4)
    rows = list(estimator.predict(finite_input_fn(12)))
    assert {row["word"] for row in rows} == {b"word"}
    assert rows[-1]["made"] in (2, 3)  # before or after its own step
