"""Summaries that a model_fn makes in a loop or a branch, where alone they have a value."""

import pytest
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tec


def looped(value, weight):
    def body(i, x):
        tf.summary.scalar("inside", x)
        return i + 1, x * weight

    return tf.while_loop(lambda i, x: i < 3, body, [tf.constant(0), value])[1]


def branched(value, weight):
    def branch():
        tf.summary.scalar("inside", value)
        return value * weight

    return tf.cond(value > 0, branch, lambda: weight)


@pytest.mark.parametrize("compute", [looped, branched])
def test_they_are_left_out_with_a_word(tmp_path, caplog, compute):
    def model_fn(features, labels, mode, params):
        weight = tf.get_variable("weight", [])
        output = compute(tf.reduce_mean(features), weight)
        tf.summary.scalar("outside", output)
        loss = output**2
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tec.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    config = tec.RunConfig(model_dir=str(tmp_path))
    estimator = tec.TPUEstimator(model_fn, config=config, train_batch_size=4, use_tpu=False)
    estimator.train(lambda params: tf.data.Dataset.from_tensors(tf.ones([4])).repeat(), steps=2)
    [path] = tmp_path.glob("*tfevents*")
    events = tf.train.summary_iterator(str(path))
    assert {value.tag for event in events for value in event.summary.value} == {"loss", "outside"}
    [said] = [r.getMessage() for r in caplog.records if "are not written" in r.getMessage()]
    assert "tf.while_loop or tf.cond are not written: inside." in said
