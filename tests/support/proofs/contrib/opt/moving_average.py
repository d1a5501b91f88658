"""Proofs of the optimizer that keeps averages."""

import pytest
import tensorflow.compat.v1 as tf

from support.proofs import graph, proves

OPT = "tf.contrib.opt"


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
