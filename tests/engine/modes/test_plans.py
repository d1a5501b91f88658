import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.legacy_models import logits_of, make_estimator, make_model_fn, train_input_fn

import tpu_estimator_compat as tpu


def steps_done(estimator) -> int:
    return int(estimator.get_variable_value("global_step"))


def _gradient_descent(loss):
    step = tf.train.get_global_step()
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)


TRAIN_OPS = {
    "operation": lambda loss, params: _gradient_descent(loss),
    "tensor": lambda loss, params: tf.identity(
        tf2.tuple([tf.constant(1.0)], control_inputs=[_gradient_descent(loss)])[0]
    ),
    "group": lambda loss, params: tf.group(_gradient_descent(loss), tf.no_op()),
    "assign_add": lambda loss, params: tf.assign_add(tf.train.get_global_step(), 1),
    "cond": lambda loss, params: tf.cond(
        loss > -1.0,
        lambda: tf.assign_add(tf.train.get_global_step(), 1),
        lambda: tf.assign_add(tf.train.get_global_step(), 2),
    ),
}


@pytest.mark.parametrize("kind", TRAIN_OPS)
def test_train_op_may_be_anything_that_runs(tmp_path, kind):
    estimator = make_estimator(tmp_path, make_model_fn(TRAIN_OPS[kind]))
    estimator.train(train_input_fn, steps=6)
    assert steps_done(estimator) == 6


def _counter(name):
    return tf.get_variable(name, [], tf.int32, initializer=tf.zeros_initializer(), trainable=False)


def test_updates_run_where_the_user_hung_them_and_nowhere_else(tmp_path):
    def model_fn(features, labels, mode, params):
        names = ("on_train_op", "on_loss", "in_collection", "nowhere")
        updates = {name: tf.assign_add(_counter(name), 1) for name in names}
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, updates["in_collection"])
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        with tf.control_dependencies([updates["on_loss"]]):
            loss = tf.identity(loss)
        train_op = tf.group(_gradient_descent(loss), updates["on_train_op"])
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = make_estimator(tmp_path, model_fn)
    estimator.train(train_input_fn, steps=4)
    counts = {
        name: int(estimator.get_variable_value(name))
        for name in ("on_train_op", "on_loss", "in_collection", "nowhere")
    }
    assert counts == {"on_train_op": 4, "on_loss": 4, "in_collection": 0, "nowhere": 0}


@pytest.mark.parametrize("library", ["keras", "tf_keras"])
def test_updates_of_keras_layers_run_by_themselves(tmp_path, library):
    keras = pytest.importorskip(library)

    def model_fn(features, labels, mode, params):
        training = mode == tpu.ModeKeys.TRAIN
        hidden = keras.layers.Dense(8, activation="relu")(features)
        hidden = keras.layers.BatchNormalization(momentum=0.5)(hidden, training=training)
        logits = keras.layers.Dense(3)(hidden)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == tpu.ModeKeys.EVAL:
            return tpu.TPUEstimatorSpec(mode, loss=loss)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=_gradient_descent(loss))

    estimator = make_estimator(tmp_path, model_fn)
    estimator.train(train_input_fn, steps=8)
    names = estimator.get_variable_names()
    moving = [n for n in names if n.endswith("moving_mean")]
    assert moving, names
    assert np.abs(estimator.get_variable_value(moving[0])).max() > 0.01
    before = estimator.get_variable_value(moving[0])
    estimator.evaluate(train_input_fn, steps=2)
    np.testing.assert_array_equal(estimator.get_variable_value(moving[0]), before)
