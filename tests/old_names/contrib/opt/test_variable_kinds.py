"""The optimizers update ref variables and resource variables to the same values."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from .test_opt import OPTIMIZERS

ROWS = [[1, 3, 3], [0, 3, 4]]


@pytest.fixture(autouse=True)
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
def test_ref_variables_get_the_values_of_resource_variables(name):
    refs, resources = (trained(OPTIMIZERS[name], kind) for kind in (False, True))
    assert refs.keys() == resources.keys()
    for variable, value in refs.items():
        np.testing.assert_array_equal(value, resources[variable], err_msg=variable)
