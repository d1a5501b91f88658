import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.legacy_models import (
    gradient_descent,
    make_estimator,
    make_model_fn,
    steps_done,
    train_input_fn,
)

import tpu_estimator_compat as tpu

TRAIN_OPS = {
    "operation": lambda loss, params: gradient_descent(loss),
    "tensor": lambda loss, params: tf.identity(
        tf2.tuple([tf.constant(1.0)], control_inputs=[gradient_descent(loss)])[0]
    ),
    "group": lambda loss, params: tf.group(gradient_descent(loss), tf.no_op()),
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
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=gradient_descent(loss))

    estimator = make_estimator(tmp_path, model_fn)
    estimator.train(train_input_fn, steps=8)
    names = estimator.get_variable_names()
    moving = [n for n in names if n.endswith("moving_mean")]
    assert moving, names
    assert np.abs(estimator.get_variable_value(moving[0])).max() > 0.01
    before = estimator.get_variable_value(moving[0])
    estimator.evaluate(train_input_fn, steps=2)
    np.testing.assert_array_equal(estimator.get_variable_value(moving[0]), before)


def test_updates_of_keras_layers_that_read_what_no_step_feeds_do_not_run(tmp_path):
    """A functional model, built with training=True on its own Input and called on the features."""
    keras = pytest.importorskip("tf_keras")

    def model_fn(features, labels, mode, params):
        inputs = keras.layers.Input([4], name="x")
        hidden = keras.layers.BatchNormalization(momentum=0.5, name="bn")(inputs, training=True)
        model = keras.Model(inputs, keras.layers.Dense(3)(hidden))
        loss = tf.losses.sparse_softmax_cross_entropy(labels, model(features, training=True))
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, [tf.no_op()])  # which nobody asks for
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=gradient_descent(loss))

    estimator = make_estimator(tmp_path, model_fn)
    estimator.train(train_input_fn, steps=3)
    assert np.abs(estimator.get_variable_value("bn/moving_mean")).max() > 0.01
