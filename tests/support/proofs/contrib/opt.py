import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from support.proofs import graph, proves


def after(optimizer, steps=3, sparse=False):
    with graph(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=np.array([[1.0], [2.0], [3.0]], np.float32))
        seen = tf.gather(variable, [0, 2, 0]) if sparse else variable
        train_op = optimizer.minimize(tf.reduce_sum(seen**2))
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(train_op)
        return session.run(variable)[:, 0]


OPT = "tf.contrib.opt"


def adam_by_hand(rule, steps=3):
    """Values after steps on sum(v ** 2) by `rule(step, gradient, m, v)`, in float64."""
    values = np.array([1.0, 2.0, 3.0])
    m, v = np.zeros(3), np.zeros(3)
    for step in range(1, steps + 1):
        change, m, v = rule(step, 2 * values, m, v)
        values = values - change
    return values


@proves(f"{OPT}.python.training.lazy_adam_optimizer")
def is_lazy(module):
    lazy = after(module.LazyAdamOptimizer(0.1), sparse=True)
    assert lazy[1] == 2.0
    dense = after(module.LazyAdamOptimizer(0.1))
    np.testing.assert_allclose(dense, after(tf.train.AdamOptimizer(0.1)), rtol=1e-6)


@proves(f"{OPT}.python.training.nadam_optimizer")
def is_nesterov(module):
    def rule(step, gradient, m, v):
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        rate = 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        return rate * (0.9 * m + 0.1 * gradient) / (np.sqrt(v) + 1e-8), m, v

    np.testing.assert_allclose(after(module.NadamOptimizer(0.1)), adam_by_hand(rule), rtol=1e-5)
    sparse = after(module.NadamOptimizer(0.1), 1, sparse=True)
    assert sparse[1] == 2.0
    assert sparse[0] < 1.0


@proves(f"{OPT}.python.training.adamax")
def is_of_the_infinity_norm(module):
    def rule(step, gradient, m, v):
        m = 0.9 * m + 0.1 * gradient
        v = np.maximum(0.999 * v, np.abs(gradient))
        return 0.1 / (1 - 0.9**step) * m / (v + 1e-8), m, v

    np.testing.assert_allclose(after(module.AdaMaxOptimizer(0.1)), adam_by_hand(rule), rtol=1e-5)
    sparse = after(module.AdaMaxOptimizer(0.1), 1, sparse=True)
    np.testing.assert_allclose(sparse, [0.9, 2.0, 2.9], rtol=1e-5)


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


@proves(f"{OPT}.python.training.lars_optimizer")
def scales(module):
    values = np.array([1.0, 2.0, 3.0])
    w, g = np.linalg.norm(values), np.linalg.norm(2 * values)
    rate = 0.1 * 0.001 * w / (g + 0.0001 * w)
    expected = values - rate * (2 * values + 0.0001 * values)
    np.testing.assert_allclose(after(module.LARSOptimizer(0.1), 1), expected, rtol=1e-6)
    skipped = after(module.LARSOptimizer(0.1, momentum=0.0, skip_list=["v"]), 1)
    np.testing.assert_allclose(skipped, 0.8 * values, rtol=1e-6)
    with pytest.raises(ValueError, match="momentum should be positive"):
        module.LARSOptimizer(0.1, momentum=-1.0)


@proves(f"{OPT}.python.training.moving_average_optimizer")
def averages(module, tmp_path):
    with graph(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=1.0)
        optimizer = module.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.5), 0.75)
        with pytest.raises(RuntimeError, match="swapping_saver"):
            optimizer.swapping_saver()
        train_op = optimizer.minimize(variable)
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        assert session.run(variable) == 0.5
        path = optimizer.swapping_saver().save(session, str(tmp_path / "model"))
        with pytest.raises(ValueError, match="is not part of variables to save"):
            optimizer.swapping_saver([variable])
    assert tf.train.load_variable(path, "v") == 0.75 * 1.0 + 0.25 * 0.5
    assert tf.train.load_variable(path, "v/ExponentialMovingAverage") == 0.5


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
