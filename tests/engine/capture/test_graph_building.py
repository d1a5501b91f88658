"""Graphs of legacy functions, whatever a script has switched off."""

SCRIPT = """
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
import numpy as np, sys
import tpu_estimator_compat as tpu
def model_fn(features, labels, mode, params):
    w = tf.get_variable("w", [])
    x = tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + features), (0, features))[1]
    loss = tf.reduce_mean(tf.square(x * w - labels))
    op = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=op)
def input_fn(params):
    return tf.data.Dataset.from_tensors((np.ones(4, "f"), np.ones(4, "f"))).repeat()
assert tf.constant([[1]]).shape[0].value == 1
config = tpu.RunConfig(model_dir=sys.argv[1])
estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=4)
estimator.train(input_fn, steps=60)
assert abs(estimator.get_variable_value("w") - 0.25) < 0.1
"""


def test_graphs_captured_under_v1_behavior_are_importable(tmp_path, forks):
    """In a process of its own: nothing switches the behavior back on."""
    done = forks.run("-c", SCRIPT, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
