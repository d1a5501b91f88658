"""What a compared training step draws follows from its global step alone."""

from typing import Any

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.tools.compare.sides import randomness


def drawn(steps: list[int]) -> list[list[int]]:
    """What a step's operations draw at these steps, in one session."""
    with tf.Graph().as_default():
        step = tf.train.create_global_step()
        sampled = tf.multinomial(tf.zeros([1, 1000]), 4, seed=1)
        uniform = tf.random_uniform([4], seed=2)
        both: Any = tf.identity(sampled[0] * 1000 + tf.cast(uniform * 1000, tf.int64))
        assert randomness.draw_by_step([both.op]) == []
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found = []
            for at in steps:
                step.load(at, session)
                found.append(session.run(both).tolist())
            return found


def test_the_same_at_the_same_step() -> None:
    first, second, again = drawn([1, 2, 1])
    assert first == again != second
    assert drawn([2]) == [second]
