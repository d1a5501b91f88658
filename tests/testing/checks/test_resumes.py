"""State that an interruption loses, which `check_resumes` must name."""

import itertools

import numpy as np
import pytest

import tpu_estimator_compat.v1 as tf
from tpu_estimator_compat.testing import check_resumes

from ..models import CLASSES, X, Y, classifier, failure, gradient_descent, train_wrapped
from ..sound_models import SOUND


@pytest.mark.parametrize("name", ["dense", "adam", "accumulation", "scaffold"])
def test_sound(name):
    check_resumes(*SOUND[name], batch_size=4, steps=3, replicas=2 if name == "adam" else 1)


def shuffled_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(8, seed=3).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)


def test_sound_input_that_shuffles():
    check_resumes(classifier(), input_fn=shuffled_input_fn, batch_size=2)


def test_input_that_counts_in_python():
    """Its position is not the dataset's: another begins at the start."""
    calls = itertools.count()

    def input_fn(params):
        x = X + np.float32(next(calls))
        return tf.data.Dataset.from_tensor_slices((x, Y)).repeat().batch(4, drop_remainder=True)

    found = failure(check_resumes, classifier(), input_fn=input_fn, batch_size=4)
    assert "After the interruption the loss is" in found
    assert "not in Python, in a py_func, or in the order of calls" in found


def moved_by(counter):
    """The train_op of a rate that falls with a counter."""

    def train(loss):
        rate = 1.0 / (1.0 + counter())
        return train_wrapped(loss, tf.train.GradientDescentOptimizer(rate))

    return train


def test_py_func_that_counts():
    def of_new_process():
        calls = itertools.count()

        def counter():
            return tf.py_func(lambda: np.float32(next(calls)), [], tf.float32)

        return counter

    def model_fn(features, labels, mode, params):
        train = moved_by(of_new_process())
        return classifier(train=train)(features, labels, mode, params)

    found = failure(check_resumes, model_fn, X, Y)
    assert "Different in the end: dense/kernel, dense/bias." in found
    assert "keep what a step needs from the steps before in variables" in found


def test_local_variable():
    def train(loss):
        count = tf.get_local_variable("count", [], initializer=tf.zeros_initializer())
        rate = 1.0 / (1.0 + count)
        with tf.control_dependencies(
            [train_wrapped(loss, tf.train.GradientDescentOptimizer(rate))]
        ):
            return count.assign_add(1.0)

    found = failure(check_resumes, classifier(train=train), X, Y)
    assert "Different in the end: dense/kernel, dense/bias." in found
    assert 'tf.get_local_variable("count", []' in found
    assert "After the interruption" not in found  # the first loss has seen no other rate
    assert "keep it in a variable of GLOBAL_VARIABLES" in found


def test_saver_that_leaves_a_variable_out():
    """Not Adam's slots, as in many scripts that save the weights alone."""

    def train(loss):
        return train_wrapped(loss, tf.train.MomentumOptimizer(0.1, 0.9))

    def scaffold_fn():
        kept = [*tf.trainable_variables(), tf.train.get_global_step()]
        names = {v.op.name for v in kept}
        others = [v for v in tf.global_variables() if v.op.name not in names]
        initialize = tf.variables_initializer(others)
        return tf.train.Scaffold(
            saver=tf.train.Saver(kept),
            ready_op=tf.constant([], tf.string),
            ready_for_local_init_op=tf.constant([], tf.string),
            local_init_op=tf.group(initialize, tf.local_variables_initializer()),
        )

    model_fn = classifier(train=train, scaffold_fn=lambda logits: scaffold_fn)
    found = failure(check_resumes, model_fn, X, Y)
    assert "dense/kernel/Momentum: the checkpoint does not restore it." in found
    assert "let no Saver, Scaffold or init_fn of model_fn leave it out" in found


def test_dropout_begins_anew():
    found = failure(check_resumes, *SOUND["dropout"])
    assert "tf.layers.dropout(hidden, 0.2, training=training)" in found
    assert "tf.random.stateless_... from the global step" in found


def test_stateless_dropout_goes_on():
    def logits_of(features, training):
        hidden = tf.layers.dense(features, 8)
        seed = tf.stack([tf.cast(tf.train.get_or_create_global_step(), tf.int32), 5])
        kept = tf.random.stateless_uniform(tf.shape(hidden), seed) < 0.8
        hidden = hidden * tf.cast(kept, tf.float32) if training else hidden
        return tf.layers.dense(hidden, CLASSES)

    check_resumes(classifier(logits_of), X, Y)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"steps": 0}, ValueError, "steps must be positive, got 0"),
        ({"batch_size": 0}, ValueError, "batch_size must be positive, got 0"),
        ({"batch_size": 9}, ValueError, "batch_size=9, but there are 8 examples"),
        ({"batch_size": "4"}, TypeError, "batch_size must be int"),
        ({"input_fn": shuffled_input_fn, "batch_size": 4}, ValueError, "but not both"),
    ],
)
def test_bad_arguments(given, error, said):
    with pytest.raises(error, match=said):
        check_resumes(classifier(train=lambda loss: gradient_descent()), X, Y, **given)


def test_input_fn_needs_a_batch_size():
    with pytest.raises(TypeError, match="batch_size must be int"):
        check_resumes(classifier(), input_fn=shuffled_input_fn)
