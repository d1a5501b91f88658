"""Proofs of cells that wrap a cell."""

import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn import legacy_cells

from support.proofs import below, evaluate, proves, variables_of
from support.proofs.contrib.rnn.rnn import run

CELLS = "tf.contrib.rnn"


@proves(*below(CELLS, "AttentionCellWrapper InputProjectionWrapper OutputProjectionWrapper"))
@proves(f"{CELLS}.HighwayWrapper")
def wraps_a_cell(wrapper):
    numbers = [] if wrapper.__name__ == "HighwayWrapper" else [4]
    assert evaluate(lambda: run(wrapper(legacy_cells.GRUCell(4), *numbers), 4)).shape == (2, 3, 4)


@proves(f"{CELLS}.EmbeddingWrapper")
def embeds(wrapper):
    def build():
        ids = tf.ones([2, 3, 1], tf.int32)
        return tf.nn.dynamic_rnn(wrapper(legacy_cells.GRUCell(4), 5, 2), ids, dtype=tf.float32)[0]

    assert evaluate(build).shape == (2, 3, 4)
    assert "rnn/embedding_wrapper/embedding" in variables_of(build)
