"""Proofs of `tf.contrib.training`."""

import time

import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import graph, proves

TRAINING = "tf.contrib.training"


@proves("tf.contrib.training.python.training")
def trains(module, tmp_path):
    with graph():
        tf.train.create_global_step()
        variable = tf.get_variable("v", initializer=2.0)
        train_op = module.create_train_op(variable**2, tf.train.GradientDescentOptimizer(0.1))
        final = module.train(train_op, str(tmp_path), hooks=[tf.train.StopAtStepHook(3)])
    np.testing.assert_allclose(final, (2 * 0.8**2) ** 2, rtol=1e-5)


@proves(f"{TRAINING}.python.training.evaluation")
def waits_for_checkpoints(module, tmp_path):
    for path in (str(tmp_path / "model-1"), str(tmp_path / "model-2")):
        with graph(), tf.Session() as session:
            tf.get_variable("v", initializer=2.0)
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, path)
    assert module.wait_for_new_checkpoint(str(tmp_path)) == path
    assert list(module.checkpoints_iterator(str(tmp_path), timeout=0)) == [path]
    start = time.monotonic()
    assert module.wait_for_new_checkpoint(str(tmp_path), path, 0.1, timeout=0.2) is None
    assert time.monotonic() - start < 5
