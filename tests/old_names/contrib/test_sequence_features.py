import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.sessions import session as session_of

from tpu_estimator_compat.old_names.contrib.rnn import BasicRNNCell
from tpu_estimator_compat.old_names.contrib.sequence_features import sequence_input_layer

columns = tf.feature_column
WORDS = columns.sequence_categorical_column_with_identity("words", 3)
HEAT = columns.sequence_numeric_column("heat", shape=(2,), default_value=-1.0)
TABLE = np.arange(6, dtype=np.float32).reshape(3, 2)


def features(second_heat=1):
    """Two steps of words and one; two of heat, and so many."""
    ids = tf.constant([2, 0, 1], tf.int64)
    places = [[0, i] for i in range(4)] + [[1, i] for i in range(2 * second_heat)]
    heat = tf.constant(np.arange(len(places)), tf.float32)
    return {
        "words": tf.SparseTensor([[0, 0], [0, 1], [1, 0]], ids, [2, 2]),
        "heat": tf.SparseTensor(places, heat, [2, 4]),
    }


def embedding():
    return columns.embedding_column(WORDS, 2, initializer=tf.constant_initializer(TABLE))


def evaluated(build):
    with tf.Graph().as_default() as graph, session_of(graph) as session:
        fetches = build()
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def test_columns_side_by_side_by_their_names():
    values, lengths = evaluated(lambda: sequence_input_layer(features(), [embedding(), HEAT]))
    heat = [[[0, 1], [2, 3]], [[4, 5], [-1, -1]]]
    words = [[TABLE[2], TABLE[0]], [TABLE[1], [0, 0]]]  # nothing is looked up past the end
    np.testing.assert_array_equal(values, np.concatenate([heat, words], -1))
    assert lengths.tolist() == [2, 1]


def test_variables_and_their_collections():
    with tf.Graph().as_default():
        for trainable in (True, False):
            sequence_input_layer(features(), [embedding()], ["mine"], trainable)
        names = [
            f"{scope}/words_embedding/embedding_weights"
            for scope in ("sequence_input_layer", "sequence_input_layer_1")
        ]
        assert [variable.op.name for variable in tf.global_variables()] == names
        assert [variable.op.name for variable in tf.get_collection("mine")] == names
        assert [variable.op.name for variable in tf.trainable_variables()] == names[:1]


def test_a_recurrent_network_reads_it():
    def build():
        values, lengths = sequence_input_layer(features(), [embedding()])
        cell = BasicRNNCell(3)
        return tf.nn.dynamic_rnn(cell, values, lengths, dtype=tf.float32)[0]

    outputs = evaluated(build)
    assert outputs.shape == (2, 2, 3)
    assert not outputs[1, 1].any()


def test_what_is_refused():
    with tf.Graph().as_default():
        for wrong in (columns.numeric_column("heat"), WORDS):
            with pytest.raises(ValueError, match="must be of type _SequenceDenseColumn"):
                sequence_input_layer(features(), [wrong])
        with pytest.raises(ValueError, match="Duplicate feature column name"):
            sequence_input_layer(features(), [HEAT, HEAT])
        with pytest.raises(ValueError, match="must not be empty"):
            sequence_input_layer(features(), [])


def test_lengths_that_differ_are_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError):
        evaluated(lambda: sequence_input_layer(features(second_heat=2), [HEAT, embedding()]))
