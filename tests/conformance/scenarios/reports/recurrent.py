"""Reports about recurrent networks in a model_fn."""

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models

_RNN = tf.nn.rnn_cell


def _sequences(count=None):
    def input_fn():
        x = np.arange(24, dtype=np.float32).reshape(4, 3, 2) / 24.0
        data = tf.data.Dataset.from_tensor_slices((x, x.sum((1, 2)), np.array([3, 1, 2, 0])))
        data = data.map(lambda x, y, n: ({"x": x, "n": n}, y)).repeat().batch(2)
        return data if count is None else data.take(count)

    return input_fn


def _trained(model_dir, record, network, steps=3):
    def model_fn(features, labels, mode):
        with tf.variable_scope("", initializer=tf.constant_initializer(0.25)):
            out = network(features, mode)
        if mode == "infer":
            return tf.estimator.EstimatorSpec(mode, predictions=out)
        loss = 0.125 * tf.reduce_mean(tf.square(out - labels))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    est = models.estimator(model_dir, model_fn)
    est.train(_sequences(), steps=steps)
    record({name: est.get_variable_value(name) for name in est.get_variable_names()})
    record(est.evaluate(_sequences(), steps=2))
    record(list(est.predict(_sequences(2))))


def a_state_that_is_a_variable(model_dir, record):
    """After tensorflow#19084: the initial state of dynamic_rnn is a variable that is trained."""

    def network(features, mode):
        initial = tf.get_variable("initial", [1, 2])
        rows = tf.shape(features["x"])[0]
        cell = _RNN.GRUCell(2)
        state = tf.tile(initial, [rows, 1])
        return tf.reduce_sum(tf.nn.dynamic_rnn(cell, features["x"], initial_state=state)[1], 1)

    _trained(model_dir, record, network)


def a_state_that_the_next_batch_takes(model_dir, record):
    """After tensorflow#17368, training-data-analyst#353: the state of an LSTM is kept."""

    def network(features, mode):
        cell = _RNN.MultiRNNCell([_RNN.LSTMCell(2), _RNN.BasicLSTMCell(2)])
        zero = cell.zero_state(2, tf.float32)
        kept = tf.nest.map_structure(
            lambda each: tf.get_local_variable(
                each.op.name.replace("/", "_"),
                [2, 2],
                initializer=tf.zeros_initializer(),
            ),
            zero,
        )
        before = tf.nest.map_structure(tf.identity, kept)
        out, after = tf.nn.dynamic_rnn(cell, features["x"], initial_state=before)
        pairs = zip(tf.nest.flatten(kept), tf.nest.flatten(after), strict=True)
        with tf.control_dependencies([variable.assign(value) for variable, value in pairs]):
            return tf.reduce_sum(out[:, -1], 1)

    _trained(model_dir, record, network)


def lengths_of_the_sequences(model_dir, record):
    """After tensorflow#9798: two directions, lengths of which one is 0, and reused variables."""

    def network(features, mode):
        sums = []
        for reuse in (None, True):
            with tf.variable_scope("both", reuse=reuse):
                (forward, backward), _ = tf.nn.bidirectional_dynamic_rnn(
                    _RNN.BasicRNNCell(2),
                    _RNN.BasicRNNCell(2),
                    features["x"],
                    sequence_length=features["n"],
                    dtype=tf.float32,
                )
                sums.append(tf.reduce_sum(forward + backward, [1, 2]))
        return sums[0] - 0.5 * sums[1]

    _trained(model_dir, record, network)


def a_decoder_that_stops_by_itself(model_dir, record):
    """After tensor2tensor#767: a decoding loop whose length is data."""

    def network(features, mode):
        cell = _RNN.DropoutWrapper(_RNN.GRUCell(2), output_keep_prob=1.0)
        state = tf.reduce_sum(features["x"], 1)
        written = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False)

        def body(i, state, written):
            out, state = cell(state, state)
            return i + 1, state, written.write(i, tf.reduce_sum(out, 1))

        longest = tf.reduce_max(tf.cast(features["n"], tf.int32)) + 1
        _, _, written = tf.while_loop(
            lambda i, *_: i < longest, body, (0, state, written), maximum_iterations=10
        )
        return tf.reduce_sum(written.stack(), 0)

    _trained(model_dir, record, network)


def unrolled_by_hand(model_dir, record):
    """After tensorflow#15088: static_rnn of slices, a state saver of one's own, scopes by hand."""

    def network(features, mode):
        cell = _RNN.ResidualWrapper(_RNN.BasicRNNCell(2))
        steps = tf.unstack(features["x"], 3, 1)
        with tf.variable_scope("outer") as scope:
            outs, state = tf.nn.static_rnn(cell, steps, dtype=tf.float32, scope=scope)
        return tf.reduce_sum(state, 1) + tf.reduce_sum(outs[0], 1)

    _trained(model_dir, record, network)
