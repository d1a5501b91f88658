"""What an optimizer makes of a variable."""

import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import graph


def after(optimizer, steps=3, sparse=False):
    """The values of a variable after some steps of an optimizer on a loss."""
    with graph(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=np.array([[1.0], [2.0], [3.0]], np.float32))
        seen = tf.gather(variable, [0, 2, 0]) if sparse else variable
        train_op = optimizer.minimize(tf.reduce_sum(seen**2))
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(train_op)
        return session.run(variable)[:, 0]
