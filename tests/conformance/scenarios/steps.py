import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models

OPTIMIZERS = {
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adagrad_da": lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_global_step()),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1),
    "proximal_descent": lambda: tf.train.ProximalGradientDescentOptimizer(0.1),
    "rms_prop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
}


def _data():
    x = np.arange(24, dtype=np.float32).reshape(6, 4) / 24
    return tf.data.Dataset.from_tensor_slices((x, x[:, 0] - x[:, 3])).batch(2).repeat()


def _with_every_optimizer(model_dir):
    for name, make in OPTIMIZERS.items():

        def model_fn(features, labels, mode, make=make):
            table = tf.get_variable("table", [3, 4], initializer=tf.ones_initializer())
            kernel = tf.get_variable("kernel", [4], initializer=tf.ones_initializer())
            rows = tf.nn.embedding_lookup(table, [1, 2])
            logits = tf.reduce_sum((features + rows) * kernel, axis=1)
            loss = tf.losses.mean_squared_error(labels, logits)
            train_op = make().minimize(loss, tf.train.get_global_step())
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

        est = models.estimator(f"{model_dir}/{name}", model_fn, save_summary_steps=0)
        est.train(_data, steps=3)


def every_optimizer(model_dir, record):
    _with_every_optimizer(model_dir)


def every_optimizer_without_v2_behavior(model_dir, record):
    tf.disable_v2_behavior()
    _with_every_optimizer(model_dir)


def _normalized(model_dir, record):
    def model_fn(features, labels, mode):
        images = tf.reshape(features, [-1, 2, 2, 1])
        values = tf.constant_initializer(np.linspace(-1, 1, 8).tolist())
        net = tf.layers.conv2d(
            images, 2, 2, padding="same", use_bias=False, kernel_initializer=values
        )
        net = tf.layers.batch_normalization(net, training=mode == "train", momentum=0.9)
        net = tf.tanh(net + 0.3)
        net = tf.layers.batch_normalization(net, training=mode == "train", fused=False)
        cell = tf.nn.rnn_cell.BasicRNNCell(3)
        kernel = tf.constant_initializer(np.linspace(-0.5, 0.4, 15).tolist())
        with tf.variable_scope("rnn", initializer=kernel):
            outputs, _ = tf.nn.dynamic_rnn(cell, tf.reshape(net, [-1, 4, 2]), dtype=tf.float32)
        logits = tf.reduce_sum(outputs, axis=[1, 2])
        if mode == "infer":
            return tf.estimator.EstimatorSpec(mode, predictions={"y": logits})
        loss = tf.losses.mean_squared_error(labels, logits)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = models.descent(loss * 0.01)
        metrics = {"mean": tf.metrics.mean(logits)}
        return tf.estimator.EstimatorSpec(mode, None, loss, train_op, metrics)

    est = models.estimator(model_dir, model_fn)
    est.train(_data, steps=5)
    record(est.evaluate(_data, steps=2))
    record(next(est.predict(_data)))

    def receiver():
        x = tf.placeholder(tf.float32, [None, 4])
        return tf.estimator.export.TensorServingInputReceiver(x, x)

    path = est.export_saved_model(f"{model_dir}/export", receiver)
    record(type(path).__name__)


def normalization_and_a_recurrent_cell(model_dir, record):
    _normalized(model_dir, record)


def normalization_and_a_recurrent_cell_without_v2_behavior(model_dir, record):
    tf.disable_v2_behavior()
    _normalized(model_dir, record)


def _branches(model_dir):
    def model_fn(features, labels, mode):
        weight = models.weight()
        step = tf.train.get_global_step()
        odd = tf.equal(step % 2, 1)
        halves = tf.cond(odd, lambda: tf.assign(weight, weight * 0.5), lambda: weight + 0.0)
        counted = tf.get_variable("counted", [], initializer=tf.zeros_initializer())

        count = tf.cond(
            odd, lambda: tf.assign_add(counted, 2.0), lambda: tf.assign_sub(counted, 1.0)
        )
        with tf.control_dependencies([halves, count]):
            loss = tf.reduce_mean(tf.square(features[:, 0] * weight - labels)) + counted * 0.0
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, step)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    models.estimator(model_dir, model_fn).train(_data, steps=5)


def branches_that_assign(model_dir, record):
    _branches(model_dir)


def branches_that_assign_without_v2_behavior(model_dir, record):
    tf.disable_v2_behavior()
    _branches(model_dir)
