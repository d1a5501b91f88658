"""Seeded random ops of several replicas: each has a stream of its own, which goes on."""

import os
import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf
from support import TESTS, python_path
from support.legacy_models import make_estimator, train_input_fn

from .host_call_models import model_with

DRAWS = {
    "from a variable": lambda: tf.random.uniform([1], seed=1),
    "from a shared kernel": lambda: tf.cast(tf.random_shuffle(tf.range(9999), 1)[:1], tf.float32),
}


def drawn_by(model_dir, strategy, draw):
    """What the replicas draw in each step: a list of steps of lists of replicas."""
    drawn = []

    def host_call(step, loss):
        number = draw()
        return lambda x: tf.py_func(lambda x: drawn.append(x.tolist()), [x], []), [number]

    estimator = make_estimator(
        model_dir, model_with(host_call), use_tpu=True, train_distribute=strategy
    )
    estimator.train(train_input_fn, steps=4)
    return drawn


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_replica_draws_the_same_however_many_there_are(tmp_path, strategy, draw):
    alone, together = (drawn_by(tmp_path / str(n), strategy(n), draw) for n in (1, 2))
    assert [[first] for first, _ in together] == alone
    assert len({number for step in together for number in step}) == 8


ONE_THREAD = """
import sys
import tensorflow.compat.v1 as tf
from tpu_estimator_compat.v1 import estimator
tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.threading.set_intra_op_parallelism_threads(1)

def model_fn(features, labels, mode):
    drawn = [tf.random_shuffle(tf.range(10), seed=i) for i in range(8)]
    loss = tf.cast(tf.add_n(drawn)[0], tf.float32)
    op = tf.assign_add(tf.train.get_global_step(), 1)
    return estimator.EstimatorSpec(mode, loss=loss, train_op=op)

est = estimator.Estimator(model_fn, sys.argv[1])
est.train(lambda: tf.data.Dataset.range(40).repeat(), steps=300)
print("steps", est.get_variable_value("global_step"))
"""


@pytest.mark.slow
def test_kernels_that_functions_share_need_no_other_thread(tmp_path):
    """The step's only thread waits for them: work that they gave its pool would never begin."""
    environment = {**os.environ, "PYTHONPATH": python_path.joined(TESTS.parent)}
    command = [sys.executable, "-c", ONE_THREAD, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.stdout == "steps 300\n", done.stderr
