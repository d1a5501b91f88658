import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import graph, proves
from tpu_estimator_compat.old_names.contrib import rnn


@proves("tf.contrib.seq2seq")
def decodes_with_attention(seq2seq):
    memory = np.eye(3, dtype=np.float32)[None]

    def build():
        mechanism = seq2seq.LuongAttention(3, memory, memory_sequence_length=[2])
        cell = seq2seq.AttentionWrapper(rnn.BasicRNNCell(3), mechanism)
        helper = seq2seq.GreedyEmbeddingHelper(memory[0], [2], end_token=0)
        decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(1, tf.float32))
        outputs, state, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=4)
        repeated = seq2seq.tile_batch(lengths, 2)
        loss = seq2seq.sequence_loss(outputs.rnn_output, outputs.sample_id, tf.ones([1, 1]))
        return outputs, state.alignments, lengths, repeated, loss

    with graph(), tf.variable_scope("", initializer=tf.ones_initializer()):
        values = build()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            outputs, alignments, lengths, repeated, loss = session.run(values)
    # All units are alike, so attention is even, and the first id of the two best ends it.
    np.testing.assert_allclose(alignments, [[0.5, 0.5, 0]])
    np.testing.assert_allclose(outputs.rnn_output, [[[0.5, 0.5, 0]]])
    assert (outputs.sample_id.tolist(), lengths.tolist(), repeated.tolist()) == ([[0]], [1], [1, 1])
    np.testing.assert_allclose(loss, -np.log(np.exp(0.5) / (2 * np.exp(0.5) + 1)), rtol=1e-5)
