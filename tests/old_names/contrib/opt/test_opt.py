import numpy as np
import pytest

import tpu_estimator_compat.v1 as tf

from ..small_net import STEPS, input_fn, make

opt = tf.contrib.opt

WEIGHTS = "fully_connected_1/weights"


def multitask():
    """The wrapper changes the optimizer that it gets, which CrossShardOptimizer can wrap."""
    inner = tf.train.AdamOptimizer(0.05)
    opt.MultitaskOptimizerWrapper(inner)
    return inner


OPTIMIZERS = {
    "AdamW": lambda: opt.AdamWOptimizer(0.01, 0.05),
    "MomentumW": lambda: opt.MomentumWOptimizer(0.01, 0.05, 0.9),
    "LazyAdam": lambda: opt.LazyAdamOptimizer(0.05),
    "Nadam": lambda: opt.NadamOptimizer(0.05),
    "AdaMax": lambda: opt.AdaMaxOptimizer(0.05),
    "LARS": lambda: opt.LARSOptimizer(5.0, skip_list=["biases"]),
    "MovingAverage": lambda: opt.MovingAverageOptimizer(tf.train.AdamOptimizer(0.05), 0.5),
    "Multitask": multitask,
}


@pytest.mark.slow
def test_optimizers_on_two_replicas(tmp_path, strategy):
    """Each trains a net of its own; nets and optimizers are all in one model."""
    one = make(tmp_path / "one", OPTIMIZERS, strategy(1))
    two = make(tmp_path / "two", OPTIMIZERS, strategy(2))
    for estimator in (one, two):
        estimator.train(input_fn, steps=STEPS)
        assert estimator.get_variable_value("global_step") == STEPS
    names = one.get_variable_names()
    for name in names:
        a, b = one.get_variable_value(name), two.get_variable_value(name)
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5, err_msg=name)
    for scope in OPTIMIZERS:
        # Those of the optimizers are there, too.
        assert sum(name.startswith(f"{scope}/") or f"/{scope}/" in name for name in names) >= 8
        weights = f"{scope}/{WEIGHTS}"
        start = tf.train.load_variable(str(tmp_path / "one" / "model.ckpt-0"), weights)
        assert np.abs(one.get_variable_value(weights) - start).max() > 1e-3, scope
