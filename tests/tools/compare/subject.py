"""A script of 2018 with all that a comparison looks at; a test compares it with changed copies."""

import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
RATE = 0.01
EPSILON = 1e-7


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    hidden = tf.nn.relu(tf.matmul(features["x"], weights("hidden", [8, 16])))
    mean = tf.get_variable("mean", [16], initializer=tf.zeros_initializer(), trainable=False)
    moment = tf.reduce_mean(hidden, axis=0)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, mean.assign_sub(0.1 * (mean - moment)))
    hidden = hidden - (moment if training else mean)
    if training:
        hidden = tf.nn.dropout(hidden, rate=0.25)
    logits = tf.matmul(hidden, weights("logits", [16, 3]))
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, axis=-1))}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    tf.summary.scalar("learning_rate", RATE)
    optimizer = tf.train.AdamOptimizer(RATE, epsilon=EPSILON)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def weights(name, shape):
    return tf.get_variable(name, shape, initializer=tf.glorot_uniform_initializer())


def input_fn(training):
    numbers = np.random.RandomState(0)
    x = numbers.randn(96, 8).astype(np.float32)
    y = numbers.randint(3, size=96).astype(np.int32)
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, y))
    return data.shuffle(96).repeat().batch(16) if training else data.batch(40)


def serving_input_fn():
    x = tf.placeholder(tf.float32, [None, 8])
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


if __name__ == "__main__":
    config = tf.estimator.RunConfig(model_dir=sys.argv[1], save_summary_steps=1)
    estimator = tf.estimator.Estimator(model_fn, config=config, params={})
    estimator.train(lambda: input_fn(True), max_steps=1000)
    print(estimator.evaluate(lambda: input_fn(False)))
    print(len(list(estimator.predict(lambda: input_fn(False)))))
    estimator.export_saved_model(sys.argv[2], serving_input_fn)
