import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from support.proofs import proves
from tpu_estimator_compat import estimator as estimators

CONTRIB = "tf.contrib.estimator"


@proves(f"{CONTRIB}.clip_gradients_by_norm")
def clips(clip_gradients_by_norm):
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=[3.0, 4.0])
        optimizer = clip_gradients_by_norm(tf.train.GradientDescentOptimizer(1.0), 1.0)
        # The gradient [6, 8] has norm 10.
        train_op = optimizer.minimize(tf.reduce_sum(variable**2))
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        np.testing.assert_allclose(session.run(variable), [2.4, 3.2], rtol=1e-6)


def input_fn():
    return tf.constant([[1.0]]), tf.constant([[2.0]])


def tower_model_fn(optimizer):
    def model_fn(features, labels, mode):
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean((features * weight - labels) ** 2)
        train_op = optimizer().minimize(loss, tf.train.get_global_step())
        return estimators.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


@proves("tf.contrib.estimator.replicate_model_fn")
def replicates(replicate, tmp_path):
    model_fn = replicate(tower_model_fn(lambda: tf.train.GradientDescentOptimizer(0.1)))
    estimators.Estimator(model_fn, str(tmp_path)).train(input_fn, steps=1)


@proves("tf.contrib.estimator.TowerOptimizer")
def wraps(optimizer, tmp_path):
    made = tower_model_fn(lambda: optimizer(tf.train.GradientDescentOptimizer(0.1)))
    estimator = estimators.Estimator(made, str(tmp_path))
    estimator.train(input_fn, steps=1)
    assert estimator.get_variable_value("weight") == pytest.approx(0.4)
