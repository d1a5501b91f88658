"""Proofs of what `tf.contrib.estimator` alone had."""

import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import proves

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
