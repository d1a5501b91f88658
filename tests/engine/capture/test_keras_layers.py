"""Variables of Keras layers have the names that they had in the original, so checkpoints fit."""

import pytest

from tpu_estimator_compat.engine.capture.capture import new_graph

from . import keras_names_probe


def names_of(model):
    return keras_names_probe.names_of(model, lambda: new_graph(None))


def test_one_scope_per_layer():
    kernels = names_of(keras_names_probe.several)[::2]
    assert kernels == ["dense/kernel", "dense_1/kernel", "dense_2/kernel"]


def test_layers_within_layers():
    names = names_of(keras_names_probe.stack)
    assert names[:2] == ["stack/block_0/dense/kernel", "stack/block_0/dense/bias"]
    assert names[-1] == "stack/dense_4/bias"


def test_twice_in_one_process():
    assert names_of(keras_names_probe.blocks) == names_of(keras_names_probe.blocks)


@pytest.fixture(scope="module")
def originals(original):
    return original.run(keras_names_probe.__file__)


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("model", keras_names_probe.MODELS, ids=lambda model: model.__name__)
def test_names_of_the_original(model, originals):
    assert names_of(model) == originals[model.__name__]
