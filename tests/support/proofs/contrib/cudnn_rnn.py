"""The proof of `tf.contrib.cudnn_rnn`."""

import tensorflow.compat.v1 as tf

from support.proofs import evaluate, proves


@proves("tf.contrib.cudnn_rnn")
def has_layers_and_cells(module):
    def layer():
        return module.CudnnGRU(2, 3)(tf.ones([4, 2, 5]))[0]

    def cell():
        compatible = module.CudnnCompatibleLSTMCell(3)
        return tf.nn.dynamic_rnn(compatible, tf.ones([4, 2, 5]), dtype=tf.float32)[0]

    assert evaluate(layer).shape == evaluate(cell).shape == (4, 2, 3)
