"""Seeded random ops of several replicas: each has a stream of its own, which goes on."""

import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn

from .host_call_models import model_with


def drawn_by(model_dir, strategy):
    """What the replicas draw in each step: a list of steps of lists of replicas."""
    drawn = []

    def host_call(step, loss):
        number = tf.random.uniform([1], seed=1)
        return lambda x: tf.py_func(lambda x: drawn.append(x.tolist()), [x], []), [number]

    estimator = make_estimator(
        model_dir, model_with(host_call), use_tpu=True, train_distribute=strategy
    )
    estimator.train(train_input_fn, steps=4)
    return drawn


def test_a_replica_draws_the_same_however_many_there_are(tmp_path, strategy):
    alone, together = (drawn_by(tmp_path / str(n), strategy(n)) for n in (1, 2))
    assert [[first] for first, _ in together] == alone
    assert len({number for step in together for number in step}) == 8
