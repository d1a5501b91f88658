"""A step at which the data ends, for any replica, is no step: it changes nothing."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import Fetching, make_estimator

import tpu_estimator_compat as tpu
from tpu_estimator_compat import estimator as tf_estimator


def counter(name):
    made = tf.get_local_variable(name, [], initializer=tf.zeros_initializer())
    return tf.assign_add(made, 1.0)


def counting_model_fn(ran):
    """Its metric, its host call and its train_op count steps, and read nothing of the data."""

    def metric_fn(x):
        count = tf.get_local_variable("count", [], initializer=tf.zeros_initializer())
        return {"count": (tf.identity(count), tf.assign_add(count, 1.0)), "x": tf.metrics.mean(x)}

    def host_call(x):
        return [tf.py_func(lambda n: ran.append(int(n)), [counter("calls")], [])]

    def model_fn(features, labels, mode, params):
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        each = features * w
        train_op = None
        if mode == "train":
            optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.0))
            train_op = optimizer.minimize(tf.reduce_mean(each), tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(
            mode,
            loss=tf.reduce_mean(each),
            train_op=train_op,
            predictions={"x": each},
            eval_metrics=(metric_fn, [each]),
            host_call=(host_call, [each]),
        )

    return model_fn


@pytest.mark.parametrize(
    ("replicas", "use_tpu", "every"), [(1, True, 1), (2, True, 1), (2, True, 2), (1, False, 1)]
)
@pytest.mark.parametrize("loop", [1, 10])
def test_what_reads_no_data_counts_steps(tmp_path, strategy, replicas, use_tpu, every, loop):
    ran = []

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices(np.arange(8, dtype=np.float32))
        return dataset.batch(params["batch_size"], drop_remainder=True)

    config = tpu.TPUConfig(iterations_per_loop=loop, experimental_host_call_every_n_steps=every)
    sizes = dict.fromkeys(["train_batch_size", "eval_batch_size", "predict_batch_size"], 4)
    estimator = make_estimator(
        tmp_path,
        counting_model_fn(ran),
        use_tpu=use_tpu,
        tpu_config=config,
        train_distribute=strategy(replicas) if use_tpu else None,
        **sizes,
    )
    estimator.train(input_fn, steps=9)
    assert ran == ([1, 2] if every == 1 or loop == 1 else [1])
    assert estimator.get_variable_value("global_step") == 2
    found = estimator.evaluate(input_fn, steps=9)
    assert (found["count"], found["x"], found["loss"]) == (2, 3.5, 3.5)
    assert len(list(estimator.predict(input_fn))) == 8
    assert ran[-4:] == [1, 2, 1, 2]


@pytest.mark.parametrize("examples", [9, 10, 8])
def test_a_step_without_data_for_one_replica(tmp_path, strategy, examples):
    """As in the original, with batches of any size: no loss is NaN, no metric sees more."""

    def model_fn(features, mode):
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        free = tf.get_variable("free", [], initializer=tf.zeros_initializer(), trainable=False)
        loss = tf.reduce_mean(features * w)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train_op = tf.group(
            optimizer.minimize(loss, tf.train.get_global_step()), tf.assign_add(free, 1.0)
        )
        metrics = {"mean": tf.metrics.mean(features), "count": tf.metrics.mean(1.0)}
        return tf_estimator.EstimatorSpec(
            mode, loss=loss, train_op=train_op, eval_metric_ops=metrics
        )

    def input_fn():
        values = np.arange(1, examples + 1, dtype=np.float32)
        return tf.data.Dataset.from_tensor_slices(values).batch(2)

    replicas = strategy(2)
    config = tpu.RunConfig(
        model_dir=str(tmp_path), train_distribute=replicas, eval_distribute=replicas
    )
    estimator = tf_estimator.Estimator(model_fn, config=config)
    steps = Fetching(tf.train.get_global_step)
    estimator.train(input_fn, hooks=[steps])
    assert steps.seen == [0, 1]
    assert estimator.get_variable_value("free") == 2
    w = estimator.get_variable_value("w")
    np.testing.assert_allclose(w, 1.0 - 0.1 * (2.5 + 6.5), rtol=1e-6)
    found = estimator.evaluate(input_fn)
    np.testing.assert_allclose(found["loss"], 4.5 * w, rtol=1e-6)
    assert (found["mean"], found["count"]) == (4.5, 1.0)
