"""Proofs of variants of Adam."""

import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import proves
from support.proofs.contrib.opt.steps import after

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
