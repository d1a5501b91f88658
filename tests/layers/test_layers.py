import inspect
import warnings

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import layers

FUNCTIONS = [name for name, value in vars(layers).items() if inspect.isfunction(value)]
ARGUMENTS = {"dense": (3,), "dropout": (), "flatten": (), "batch_normalization": ()}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_layers_warn_of_nothing(name):
    with tf.Graph().as_default(), warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(layers, name)(tf.zeros([2, 4]), *ARGUMENTS[name])


def test_all_functions_are_quiet():
    public = [name for name in FUNCTIONS if not name.startswith("_")]
    assert len(public) > 15
    assert {getattr(layers, name).__code__.co_name for name in public} == {"quiet"}


def test_what_a_layer_calls_may_warn():
    def initializer(shape, dtype=None, partition_info=None):
        warnings.warn("mine", UserWarning, stacklevel=1)
        return tf.zeros(shape, dtype)

    with tf.Graph().as_default(), pytest.warns(UserWarning, match="mine"):
        layers.dense(tf.zeros([2, 4]), 3, kernel_initializer=initializer)
