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


ROWS = [[1, 3, 3], [0, 3, 4]]


@pytest.fixture
def control_flow_of_tensorflow_1():
    """TensorFlow 2's functions of branches cannot write to refs."""
    tf.disable_control_flow_v2()
    yield
    tf.enable_control_flow_v2()


def trained(optimizer, use_resource):
    """The values of all variables, after steps that look some rows of a table up."""
    random = np.random.RandomState(0)
    with tf.Graph().as_default(), tf.Session() as session:
        table, weights = (
            tf.get_variable(
                name, initializer=random.rand(*shape).astype("f"), use_resource=use_resource
            )
            for name, shape in (("table", (5, 4)), ("weights", (4, 2)))
        )
        ids = tf.placeholder(tf.int64, [None])
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.gather(table, ids), weights) - 1.0))
        train_op = optimizer().minimize(loss)
        session.run(tf.global_variables_initializer())
        for rows in ROWS:
            session.run(train_op, {ids: rows})
        refs = {variable.dtype._is_ref_dtype for variable in tf.global_variables()}
        assert refs == {not use_resource}
        return {v.op.name: value for v in tf.global_variables() for value in [session.run(v)]}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ref_variables_get_the_values_of_resource_variables(name, control_flow_of_tensorflow_1):
    refs, resources = (trained(OPTIMIZERS[name], kind) for kind in (False, True))
    assert refs.keys() == resources.keys()
    for variable, value in refs.items():
        np.testing.assert_array_equal(value, resources[variable], err_msg=variable)
