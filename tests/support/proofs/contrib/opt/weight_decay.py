"""Proofs of optimizers with decoupled weight decay."""

import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import graph, proves
from support.proofs.contrib.opt.steps import after

OPT = "tf.contrib.opt"


@proves(OPT, f"{OPT}.python.training.weight_decay_optimizers")
def decays(module):
    momentum = module.MomentumWOptimizer(0.01, 0.1, 0.0)
    values = np.array([1.0, 2.0, 3.0])
    for _ in range(3):
        # The gradient is of the values before they decay.
        values = values * 0.99 - 0.1 * 2 * values
    np.testing.assert_allclose(after(momentum), values, rtol=1e-6)
    plain = after(tf.train.AdamOptimizer(0.1))
    np.testing.assert_allclose(after(module.AdamWOptimizer(0.0, 0.1)), plain, rtol=1e-6)
    one = after(module.AdamWOptimizer(0.5, 0.0), 1, sparse=True)
    np.testing.assert_allclose(one, [0.5, 2.0, 1.5])  # rows that are not looked up stay
    extended = module.extend_with_decoupled_weight_decay(tf.train.AdamOptimizer)
    same = after(extended(weight_decay=0.01, learning_rate=0.1))
    np.testing.assert_allclose(same, after(module.AdamWOptimizer(0.01, 0.1)), rtol=1e-6)
    with graph():
        kept, other = tf.get_variable("a", initializer=1.0), tf.get_variable("b", initializer=1.0)
        optimizer = module.AdamWOptimizer(lambda: 0.5, 0.0)
        train_op = optimizer.minimize(kept + other, decay_var_list=[other])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(train_op)
            assert session.run([kept, other]) == [1.0, 0.5]
