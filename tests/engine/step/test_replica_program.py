"""Programs that replicas run: what is fetched runs, and nothing else."""

import tensorflow.compat.v1 as tf


def test_only_what_is_fetched_runs(graph, session):
    counter = tf.get_variable("counter", [], tf.int32, tf.zeros_initializer())
    wanted = tf.assign_add(counter, 1)
    tf.assign_add(counter, 100)
    session.run(counter.initializer)
    assert session.run(wanted) == 1
    assert session.run(wanted) == 2
    assert session.run(counter) == 2
