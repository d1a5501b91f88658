"""A training graph on several replicas must exchange something: who forgets it is told."""

import numpy as np
import pytest
import tensorflow as tf
from support.untuned import untuned

import tpu_estimator_compat as tpu

tf1 = tf.compat.v1

DEMAND = "CrossShardOptimizer must be used for model training on TPUs."


def plain(loss):
    return tf1.train.GradientDescentOptimizer(0.1).minimize(loss, tf1.train.get_global_step())


def wrapped(loss):
    optimizer = tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
    return optimizer.minimize(loss, tf1.train.get_global_step())


def elsewhere(loss):
    """The original looked for an exchange anywhere: by whom, it left to the user."""
    with tf.control_dependencies([tf1.tpu.cross_replica_sum(loss)]):
        return plain(loss)


def in_a_branch(loss):
    return tf.cond(loss > 1e9, lambda: tf1.tpu.cross_replica_sum(loss), lambda: loss)


def model_fn(features, labels, mode, params):
    w = tf1.get_variable("w", [], initializer=tf1.ones_initializer())
    loss = tf.reduce_mean((features * w - labels) ** 2)
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=params["train_op"](loss))


def input_fn(params):
    x = np.arange(8, dtype=np.float32)
    data = tf.data.Dataset.from_tensor_slices((x, x)).repeat()
    return untuned(data.batch(params["batch_size"], drop_remainder=True))


@pytest.fixture
def estimator(tmp_path, strategy):
    """`estimator(train_op, replicas)`."""

    def of(train_op, replicas=2, use_tpu=True):
        return tpu.TPUEstimator(
            model_fn,
            config=tpu.RunConfig(model_dir=tmp_path, train_distribute=strategy(replicas)),
            params={"train_op": train_op},
            use_tpu=use_tpu,
            train_batch_size=8,
        )

    return of


def test_a_plain_optimizer(estimator):
    with pytest.raises(ValueError, match=DEMAND) as raised:
        estimator(plain).train(input_fn, steps=1)
    assert "There are 2 replicas" in str(raised.value)


def test_a_plain_optimizer_in_fit(estimator):
    model = estimator(plain).keras_model()
    with pytest.raises(ValueError, match=DEMAND):
        model.fit(input_fn({"batch_size": 8}), steps_per_epoch=1)


@pytest.mark.parametrize("train_op", [wrapped, elsewhere])
def test_an_exchange(train_op, estimator):
    estimator(train_op).train(input_fn, steps=1)


def test_an_exchange_in_a_branch(estimator):
    """It is one, though not one that several CPUs can make."""
    with pytest.raises(NotImplementedError, match="inside a tf"):
        estimator(in_a_branch).train(input_fn, steps=1)


def test_one_replica_needs_none(estimator):
    estimator(plain, replicas=1).train(input_fn, steps=1)


def test_without_tpu_optimizers_exchange_by_themselves(estimator):
    estimator(plain, use_tpu=False).train(input_fn, steps=1)


_ORIGINAL = """
import json, types
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu import tpu_function
from tensorflow_estimator.python.estimator.tpu import tpu_estimator

tf.disable_v2_behavior()

def plain(loss): return tf.train.GradientDescentOptimizer(0.1).minimize(loss)
def wrapped(loss):
    return tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1)).minimize(loss)
def elsewhere(loss):
    tf.tpu.cross_replica_sum(loss)
    return plain(loss)

found = []
for train_op in plain, wrapped, elsewhere:
    for replicas in 1, 2:
        with tf.Graph().as_default(), tpu_function.tpu_shard_context(replicas):
            train_op(tf.get_variable("w", []) ** 2)
            try:
                tpu_estimator._validate_tpu_training_graph(
                    types.SimpleNamespace(num_replicas=replicas))
                found.append(f"{train_op.__name__} {replicas} passes")
            except ValueError as error:
                found.append(f"{train_op.__name__} {replicas} {error}")
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.parity
def test_the_originals_demand(original):
    """Its check of a graph; the rest of its training needs a TPU."""
    assert original.run("-c", _ORIGINAL) == [
        "plain 1 passes",
        f"plain 2 {DEMAND}",
        "wrapped 1 passes",
        "wrapped 2 passes",
        "elsewhere 1 passes",
        "elsewhere 2 passes",
    ]
