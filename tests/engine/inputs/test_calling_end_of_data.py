"""What is not made of the data changes no more once the data have ended."""

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.estimator import Estimator, EstimatorSpec

STEPS = 5


def dataset():
    return tf.data.Dataset.from_tensor_slices([[1.0]] * STEPS).batch(1)


def tensors():
    return tf.data.make_one_shot_iterator(dataset()).get_next()


def queue():
    value = tf.train.input_producer([1.0] * STEPS, num_epochs=1, shuffle=False).dequeue()
    return tf.train.batch([value], 1)


def model_fn(features, mode, params):
    made = {"trainable": False, "initializer": tf.zeros_initializer()}
    first, second = (tf.get_variable(name, [], **made) for name in ("first", "second"))
    if params["branch"]:
        count = tf.cond(first >= 0, lambda: second.assign_add(1), lambda: second + 0)
    else:
        count = second.assign_add(1)
    train_op = tf.group(first.assign_add(1), count, tf.train.get_global_step().assign_add(1))
    return EstimatorSpec(mode, loss=tf.reduce_sum(features), train_op=train_op)


@pytest.mark.parametrize("branch", [False, True])
@pytest.mark.parametrize("input_fn", [dataset, tensors, queue])
def test_counters_stand_at_the_number_of_elements(tmp_path, input_fn, branch):
    estimator = Estimator(model_fn, str(tmp_path), params={"branch": branch})
    estimator.train(input_fn)
    names = ("first", "second", "global_step")
    assert [estimator.get_variable_value(name) for name in names] == [STEPS] * 3
