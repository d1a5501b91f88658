"""Builds the layers of `tf.contrib`, and prints variables and results as JSON.

It runs with the original (TensorFlow 2.15 and tf_slim) and with this package, and knows the
difference from its first argument.
"""

import json
import os
import sys
import types

import numpy as np

if sys.argv[1] == "original":
    sys.path.insert(0, sys.argv[2])  # where a link to tf_slim is
    import tensorflow.compat.v1 as tf
    import tf_slim as slim
    from tensorflow_estimator.python.estimator.api._v1 import estimator

    tf.estimator = estimator
    # TensorFlow 2.15.1 looks for its own Keras under the name that Keras 2 got later.
    import keras.src.legacy_tf_layers.normalization as normalization

    for name in ("tf_keras", "tf_keras.legacy_tf_layers"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["tf_keras.legacy_tf_layers.normalization"] = normalization
    # TensorFlow 2.15 had moved names already that tf_slim asks for; there they are the same.
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import array_ops, control_flow_ops, variables

    ops.Tensor, ops.IndexedSlices, variables.VariableV1 = tf.Tensor, tf.IndexedSlices, tf.Variable
    array_ops.stack, array_ops.unstack = tf.stack, tf.unstack
    control_flow_ops.cond, control_flow_ops.while_loop = tf.cond, tf.while_loop
else:
    import tpu_estimator_compat.v1 as tf

    slim = tf.contrib.slim

RANDOM = np.random.RandomState(0)
IMAGES = RANDOM.rand(2, 8, 8, 3).astype(np.float32)
STEPS = RANDOM.rand(2, 4, 5).astype(np.float32)


def run_rnn(make_cell):
    return lambda: tf.nn.dynamic_rnn(make_cell(), tf.constant(STEPS), dtype=tf.float32)[0]


def separable_net():
    net = slim.separable_conv2d(tf.constant(IMAGES), 4, 3, 1, normalizer_fn=slim.batch_norm)
    return slim.avg_pool2d(slim.conv2d_transpose(net, 2, 3, 2), 2)


def scoped_net():
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        weights_regularizer=slim.l2_regularizer(0.1),
        normalizer_fn=slim.batch_norm,
        normalizer_params={"is_training": True, "decay": 0.9, "scale": True},
    ):
        net = slim.repeat(tf.constant(IMAGES), 2, slim.conv2d, 4, [3, 3], scope="convs")
        net = slim.fully_connected(slim.flatten(net), 5, activation_fn=None)
    return slim.softmax(net)


CASES = {
    "batch_norm": lambda: slim.batch_norm(tf.constant(IMAGES), scale=True, decay=0.9),
    "batch_norm_rank_2": lambda: slim.batch_norm(tf.constant(IMAGES[0, 0]), decay=0.9),
    "batch_norm_inference": lambda: slim.batch_norm(tf.constant(IMAGES), is_training=False),
    "batch_norm_in_place": lambda: slim.batch_norm(
        tf.constant(IMAGES), decay=0.9, updates_collections=None, fused=False
    ),
    "batch_norm_renorm": lambda: slim.batch_norm(tf.constant(IMAGES), renorm=True, fused=False),
    "layer_norm": lambda: slim.layer_norm(tf.constant(IMAGES)),
    "layer_norm_last": lambda: slim.layer_norm(
        tf.constant(STEPS), begin_norm_axis=-1, begin_params_axis=-1
    ),
    "group_norm": lambda: slim.group_norm(tf.constant(IMAGES), groups=3),
    "instance_norm": lambda: slim.instance_norm(tf.constant(IMAGES)),
    "fully_connected": lambda: slim.fully_connected(tf.constant(STEPS), 7),
    "conv2d": lambda: slim.conv2d(tf.constant(IMAGES), 4, 3, stride=2),
    "conv2d_rate": lambda: slim.conv2d(tf.constant(IMAGES), 4, 3, rate=2, padding="VALID"),
    "separable": separable_net,
    "scoped": scoped_net,
    "tf.layers": lambda: tf.layers.dense(
        tf.layers.batch_normalization(tf.constant(IMAGES), training=True), 3
    ),
    "basic_lstm": run_rnn(lambda: tf.nn.rnn_cell.BasicLSTMCell(3)),
    "lstm": run_rnn(lambda: tf.nn.rnn_cell.LSTMCell(3, use_peepholes=True, num_proj=2)),
    "gru": run_rnn(lambda: tf.nn.rnn_cell.GRUCell(3)),
    "stacked": run_rnn(
        lambda: tf.nn.rnn_cell.MultiRNNCell(
            [
                tf.nn.rnn_cell.ResidualWrapper(tf.nn.rnn_cell.BasicRNNCell(5)),
                tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(2)),
            ]
        )
    ),
}


def fill(variables):
    """Assigns values that depend on a variable's place and shape only."""
    random = np.random.RandomState(1)
    return [v.assign(0.5 + 0.3 * random.randn(*v.shape.as_list())) for v in variables]


def run(build):
    with tf.Graph().as_default(), tf.Session() as session:
        output = build()
        variables = tf.global_variables()
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        losses = tf.losses.get_regularization_losses()
        trainable = tf.trainable_variables()
        gradients = [g for g in tf.gradients(tf.reduce_sum(output**2), trainable) if g is not None]
        filled = fill(variables)
        session.run(tf.global_variables_initializer())
        session.run(filled)
        values = session.run([output, gradients, losses])
        session.run(updates)
        after = session.run(variables)
    return {
        "variables": [(v.op.name, v.shape.as_list()) for v in variables],
        "trainable": [v.op.name for v in trainable],
        "updates": len(updates),
        "values": [np.asarray(v).tolist() for v in tf.nest.flatten(values) + after],
    }


def batches(**kwargs):
    x = {"a": np.arange(5.0), "b": np.arange(10).reshape(5, 2)}
    seen = []

    def model_fn(features, labels, mode):
        def look(*arrays):
            seen.append([array.tolist() for array in arrays])
            return np.float32(0)

        tensors = [features["a"], features["b"], labels]
        loss = tf.reshape(tf.py_func(look, tensors, tf.float32), [])
        return tf.estimator.EstimatorSpec(mode, loss=loss)

    input_fn = tf.estimator.inputs.numpy_input_fn(x, np.arange(5), shuffle=False, **kwargs)
    estimator = tf.estimator.Estimator(model_fn, sys.argv[2] + "/model")

    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.create_global_step()
        session.run(step.initializer)
        tf.train.Saver().save(session, sys.argv[2] + "/model/model.ckpt-0")
    estimator.evaluate(input_fn, steps=4)
    return seen


found = {name: run(build) for name, build in CASES.items()}
found["batches"] = batches(batch_size=2, num_epochs=1)
found["batches over epochs"] = batches(batch_size=3, num_epochs=2)
found["batches without end"] = batches(batch_size=3, num_epochs=None)
print(json.dumps(found), flush=True)
# Threads of the original's queue runners may still be in TensorFlow. One that comes back to Python
# while the interpreter ends aborts the process ("FATAL: exception not rethrown").
os._exit(0)
