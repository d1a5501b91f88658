"""A script of TensorFlow 1.15, with names of `tf.contrib` that no later release has."""

import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode, params):
    cell = tf.contrib.rnn.LayerNormBasicLSTMCell(4)
    outputs, _ = tf.nn.dynamic_rnn(cell, features, dtype=tf.float32)
    logits = tf.contrib.layers.fully_connected(outputs[:, -1], 3, activation_fn=None)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.contrib.layers.optimize_loss(
        loss, tf.train.get_global_step(), learning_rate=0.01, optimizer="Adam"
    )
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    draw = np.random.RandomState(0)
    examples = draw.randn(32, 5, 2).astype(np.float32), draw.randint(0, 3, 32)
    dataset = tf.data.Dataset.from_tensor_slices(examples).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def main(_):
    config = tf.contrib.tpu.RunConfig(model_dir="model", tf_random_seed=1)
    estimator = tf.contrib.tpu.TPUEstimator(
        model_fn, config=config, use_tpu=False, train_batch_size=8, eval_batch_size=8
    )
    estimator.train(input_fn, max_steps=10)
    estimator.evaluate(input_fn, steps=4)


if __name__ == "__main__":
    tf.app.run()
