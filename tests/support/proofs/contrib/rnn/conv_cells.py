"""Proofs of convolutional cells."""

from support.proofs import below, evaluate, proves, variables_of
from support.proofs.contrib.rnn.rnn import run

CELLS = "tf.contrib.rnn"


@proves(f"{CELLS}.ConvLSTMCell")
def convolves(cell):
    shape = evaluate(lambda: run(cell(1, [4, 2], 3, [2]), 4, 2)).shape
    assert shape == (2, 3, 4, 3)


@proves(*below(CELLS, "Conv1DLSTMCell Conv2DLSTMCell Conv3DLSTMCell"))
def convolves_dimensions(cell):
    n = int(cell.__name__[4])
    arguments = {"input_shape": [4] * n + [2], "output_channels": 3, "kernel_shape": [2] * n}
    names = variables_of(lambda: run(cell(**arguments), *[4] * n, 2))
    assert names == [f"rnn/conv_{n}d_lstm_cell/{name}" for name in ("kernel", "biases")]
