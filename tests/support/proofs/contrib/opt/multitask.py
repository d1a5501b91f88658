"""Proofs of the optimizer of several tasks."""

import tensorflow.compat.v1 as tf

from support.proofs import graph, proves

OPT = "tf.contrib.opt"


@proves(f"{OPT}.python.training.multitask_optimizer_wrapper")
def skips_zeros(module):
    with graph(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=1.0)
        on = tf.placeholder(tf.float32, [])
        optimizer = module.MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(0.1, 0.9))
        gradients, norm = module.clip_gradients_by_global_norm(
            optimizer.compute_gradients(variable * on), 15.0
        )
        train_op = optimizer.apply_gradients(gradients)
        session.run(tf.global_variables_initializer())
        assert session.run(norm, {on: 1.0}) == 1.0
        session.run(train_op, {on: 1.0})
        before = session.run(variable)
        session.run(train_op, {on: 0.0})
        assert session.run(variable) == before  # momentum alone would have moved it
