"""What a model_fn of TensorFlow 1 does with variables and sizes, which TensorFlow 2 refuses."""

import os
import pathlib

from support import python_path

ROOT = pathlib.Path(__file__).parents[3]

SCRIPT = """
import tensorflow as tf

def daisy_chain(getter, name, *args, **kwargs):
    variable = getter(name, *args, **kwargs)
    value = tf.identity(variable._ref())
    value.assign_sub = variable.assign_sub
    return value

def model_fn(features, labels, mode):
    with tf.variable_scope("chained", custom_getter=daisy_chain):
        weight = tf.get_variable("weight", [3, 6 / 2], initializer=tf.zeros_initializer())
    cell = tf.nn.rnn_cell.LSTMCell(6 / 2)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.matmul(features, weight)[:, None], dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(outputs - 1.0))
    train_op = tf.train.GradientDescentOptimizer(1.0).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn():
    return tf.data.Dataset.from_tensors(tf.ones([4, 3])).repeat()

estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(tf_random_seed=1))
estimator.train(input_fn, steps=3)
weight = estimator.get_variable_value("chained/weight")
print(weight.shape, (weight != 0).all())
try:
    tf.TensorShape([1.0])
    print("a float is a size here")
except TypeError:
    print("a float is no size here")
"""


def test_values_of_variables_and_whole_floats_as_sizes(forks, tmp_path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = forks.run(
        *("-m", "tpu_estimator_compat", "run", "script.py"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": python_path.joined(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.stdout.splitlines() == ["(3, 3) True", "a float is no size here"], done.stderr
