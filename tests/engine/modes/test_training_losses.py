"""Losses of other types than floats, and specs that name no mode, train as in the original."""

import pytest
from support.legacy_models import steps_done

import tpu_estimator_compat.v1 as tf

LOSSES = {
    "int32": lambda x, w: tf.cast(tf.reduce_sum(x * w), tf.int32),
    "uint8": lambda x, w: tf.cast(tf.reduce_sum(x * w), tf.uint8),
    "bfloat16": lambda x, w: tf.cast(tf.reduce_sum(x * w), tf.bfloat16),
    "a constant": lambda x, w: tf.constant(3, tf.int64),
    "a variable": lambda x, w: w,
    "a variable of one element": lambda x, w: tf.get_variable("v", [1]),
    "an integer variable": lambda x, w: tf.get_variable("v", [], tf.int32),
    "a ref variable": lambda x, w: tf.get_variable("v", [], use_resource=False),
}


def make_estimator(model_dir, loss_of, replicas=1, mode_of=lambda mode: mode):
    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return tf.estimator.EstimatorSpec(
            mode_of(mode), features, loss_of(features, w), tf.group(step, tf.assign_add(w, 1.0))
        )

    strategy = None
    if replicas > 1:
        strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])
    config = tf.estimator.RunConfig(str(model_dir), train_distribute=strategy)
    return tf.estimator.Estimator(model_fn, config=config)


def input_fn():
    return tf.data.Dataset.from_tensors(tf.ones([2, 1])).repeat(4)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses(tmp_path, loss):
    estimator = make_estimator(tmp_path, LOSSES[loss]).train(input_fn, steps=3)
    assert (steps_done(estimator), estimator.get_variable_value("w")) == (3, 4)


def test_an_integer_loss_of_two_replicas(tmp_path):
    estimator = make_estimator(tmp_path, LOSSES["int32"], replicas=2)
    assert steps_done(estimator.train(input_fn, steps=2)) == 2


def test_a_spec_without_a_mode(tmp_path):
    estimator = make_estimator(
        tmp_path, lambda x, w: tf.reduce_sum(x * w), mode_of=lambda mode: None
    )
    estimator.train(input_fn, steps=3)
    assert estimator.evaluate(input_fn)["loss"] == 8
    assert [prediction.tolist() for prediction in estimator.predict(input_fn)] == [[1.0]] * 8


def test_a_spec_of_another_mode_lacks_a_loss(tmp_path):
    estimator = make_estimator(tmp_path, lambda x, w: None, mode_of=lambda mode: None)
    with pytest.raises(ValueError, match=r"Missing loss\. A spec with mode='train' needs one"):
        estimator.train(input_fn, steps=1)
