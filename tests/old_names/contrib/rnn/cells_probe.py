"""Runs cells of `tf.contrib.rnn`, and prints their variables and what they compute, as JSON.

It runs on TensorFlow 1.15, which has them: `python cells_probe.py > cells_of_1_15.json` with that
recorded what `test_rnn.py` compares with. Values of variables follow from their names.
"""

import json
import types

import numpy as np

TIME, BATCH, DEPTH = 3, 2, 4
FLAT = np.random.RandomState(0).randn(TIME, BATCH, DEPTH).astype(np.float32)
IMAGES = {
    n: np.random.RandomState(n).randn(TIME, BATCH, *[4, 3, 5][:n], 2).astype(np.float32)
    for n in (1, 2, 3)
}
IDS = np.array([[[1], [0]], [[4], [2]], [[0], [3]]], np.int32)
TIMES = np.array([[0.5], [2.5], [14.0]])[:, np.newaxis] + np.arange(BATCH)[:, np.newaxis]


def conv(n):
    """Arguments of a convolutional cell of some dimensions."""
    shape = [4, 3, 5][:n]
    return {"input_shape": [*shape, 2], "output_channels": 3, "kernel_shape": [3, 2, 1][:n]}


def lstm_variants(name, **more):
    """Cells with what LSTMs may have, together and apart."""
    everything = {"use_peepholes": True, "num_proj": 3, "proj_clip": 0.05, "forget_bias": 0.3}
    everything.update(more)
    return {
        f"{name} plain": (lambda rnn: getattr(rnn, name)(4), FLAT),
        f"{name} everything": (lambda rnn: getattr(rnn, name)(4, **everything), FLAT),
    }


def cases():
    """A function of `tf.contrib.rnn` that makes a cell, and its inputs, by the name of the case."""
    made = {
        "conv1": (lambda rnn: rnn.Conv1DLSTMCell(**conv(1)), IMAGES[1]),
        "conv2": (lambda rnn: rnn.Conv2DLSTMCell(forget_bias=0.5, **conv(2)), IMAGES[2]),
        "conv3": (lambda rnn: rnn.Conv3DLSTMCell(use_bias=False, **conv(3)), IMAGES[3]),
        "conv": (lambda rnn: rnn.ConvLSTMCell(2, name="mine", **conv(2)), IMAGES[2]),
        "conv skip": (
            lambda rnn: rnn.ConvLSTMCell(2, skip_connection=True, **conv(2)),
            IMAGES[2][:1],
        ),
        "attention": (lambda rnn: rnn.AttentionCellWrapper(rnn.LSTMCell(4), 2), FLAT),
        "attention sizes": (
            lambda rnn: rnn.AttentionCellWrapper(
                rnn.GRUCell(4), 3, attn_size=5, attn_vec_size=2, input_size=6, state_is_tuple=False
            ),
            FLAT,
        ),
        "input projection": (
            lambda rnn: rnn.InputProjectionWrapper(rnn.GRUCell(4), 3, activation=rnn_tanh),
            FLAT,
        ),
        "output projection": (
            lambda rnn: rnn.OutputProjectionWrapper(rnn.LSTMCell(4), 3, activation=rnn_tanh),
            FLAT,
        ),
        "embedding": (lambda rnn: rnn.EmbeddingWrapper(rnn.LSTMCell(4), 5, 3), IDS),
        "highway": (lambda rnn: rnn.HighwayWrapper(rnn.GRUCell(DEPTH)), FLAT),
        "highway gates": (
            lambda rnn: rnn.HighwayWrapper(rnn.LSTMCell(DEPTH), False, carry_bias_init=2.0),
            FLAT,
        ),
        "gru block": (lambda rnn: rnn.GRUBlockCell(4), FLAT),
        "gru block 2": (lambda rnn: rnn.GRUBlockCellV2(4), FLAT),
        "nas": (lambda rnn: rnn.NASCell(4), FLAT),
        "nas all": (lambda rnn: rnn.NASCell(4, num_proj=3, use_bias=True, name="n"), FLAT),
        "ugrnn": (lambda rnn: rnn.UGRNNCell(4, forget_bias=0.5), FLAT),
        "indrnn": (lambda rnn: rnn.IndRNNCell(4), FLAT),
        "indy lstm": (lambda rnn: rnn.IndyLSTMCell(4, forget_bias=0.5), FLAT),
        "sru": (lambda rnn: rnn.SRUCell(4), FLAT),
        "phased": (lambda rnn: rnn.PhasedLSTMCell(4), (TIMES, FLAT)),
        "phased peepholes": (
            lambda rnn: rnn.PhasedLSTMCell(
                4, use_peepholes=True, leak=0.1, ratio_on=0.3, trainable_ratio_on=False
            ),
            (TIMES.astype(np.float32), FLAT),
        ),
        "groups": (lambda rnn: rnn.GLSTMCell(4, number_of_groups=2), FLAT),
        "groups projected": (
            lambda rnn: rnn.GLSTMCell(6, num_proj=4, number_of_groups=2, forget_bias=0.2),
            FLAT,
        ),
        "coupled one tensor": (
            lambda rnn: rnn.CoupledInputForgetGateLSTMCell(
                4, num_proj=3, num_unit_shards=3, num_proj_shards=2, state_is_tuple=False
            ),
            FLAT,
        ),
        "layer norm basic": (lambda rnn: rnn.LayerNormBasicLSTMCell(4), FLAT),
        "stack": (
            lambda rnn: rnn.MultiRNNCell([rnn.IndRNNCell(4), rnn.HighwayWrapper(rnn.SRUCell(4))]),
            FLAT,
        ),
    }
    norm = {"layer_norm": True, "norm_gain": 0.9, "norm_shift": 0.1}
    made.update(lstm_variants("CoupledInputForgetGateLSTMCell", **norm))
    return made


def rnn_tanh(x):
    import tensorflow.compat.v1 as tf

    return tf.tanh(x)


def value_of(variable):
    """What a variable is set to: a wave that starts by its name, above 0 where it must be."""
    name, shape = variable.op.name, variable.shape.as_list()
    wave = np.sin(np.arange(np.prod(shape)) * 0.7 + sum(map(ord, name))).reshape(shape)
    if name.endswith("period"):
        return (2 + wave).astype(np.float32)
    if name.endswith("ratio_on"):
        return (0.5 + 0.2 * wave).astype(np.float32)
    return (0.5 * wave).astype(np.float32)


def sizes(structure, tf):
    return [tf.TensorShape(size).as_list() for size in tf.nest.flatten(structure)]


def run(tf, rnn, make, inputs, dynamic):
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True  # for one run it takes long
    with tf.Graph().as_default() as graph, tf.Session(graph=graph, config=config) as session:
        cell = make(rnn)
        outputs, state = sequence(tf, cell, tf.nest.map_structure(tf.constant, inputs), dynamic)
        trainable, variables = tf.trainable_variables(), tf.global_variables()
        gradients = tf.gradients(tf.reduce_sum(outputs**2), trainable)
        squares = [tf.reduce_sum(tf.convert_to_tensor(x) ** 2) for x in gradients if x is not None]
        initial = {variable.initializer.inputs[1]: value_of(variable) for variable in variables}
        session.run(tf.global_variables_initializer(), initial)
        last, squares, values = session.run([tf.nest.flatten(state), squares, outputs])
    return {
        "variables": [[v.op.name, v.shape.as_list()] for v in variables],
        "trainable": [v.op.name for v in trainable],
        "without gradient": [i for i, g in enumerate(gradients) if g is None],
        "state size": sizes(cell.state_size, tf),
        "output size": sizes(cell.output_size, tf),
        "outputs": numbers(values.ravel()[:: max(1, values.size // 8)]),
        "sums": numbers([np.abs(x).sum() for x in [values, *last]]),
        "gradients": numbers(squares),
    }


def sequence(tf, cell, inputs, dynamic):
    """A cell's outputs, and its last state, in a loop or unrolled."""
    if dynamic:
        return tf.nn.dynamic_rnn(cell, inputs, time_major=True, dtype=tf.float32)
    unstacked = [tf.unstack(x) for x in tf.nest.flatten(inputs)]
    times = range(len(unstacked[0]))
    steps = [tf.nest.pack_sequence_as(inputs, [part[i] for part in unstacked]) for i in times]
    outputs, state = tf.nn.static_rnn(cell, steps, dtype=tf.float32)
    return tf.stack(outputs), state


def numbers(values):
    return [float(f"{x:.8g}") for x in values]


def modes(name):
    """Whether a case runs in a loop, too: those that are of different kinds do."""
    return (False, True) if name in ("conv2", "attention", "phased", "stack") else (False,)


def results(tf, rnn):
    return {
        f"{name}, {'loop' if dynamic else 'unrolled'}": run(tf, rnn, make, inputs, dynamic)
        for name, (make, inputs) in sorted(cases().items())
        for dynamic in modes(name)
    }


if __name__ == "__main__":
    import tensorflow.compat.v1 as original
    from tensorflow.contrib import rnn as contrib_rnn
    from tensorflow.contrib.rnn.python.ops import rnn_cell

    # Some of its cells were only found where they were written.
    both = types.SimpleNamespace(**{**vars(rnn_cell), **vars(contrib_rnn)})
    recorded = results(original, both)
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(recorded[name])}" for name in recorded)
    print("{\n" + rows + "\n}")
