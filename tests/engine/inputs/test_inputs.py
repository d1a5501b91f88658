import time

import numpy as np
import pytest
import tensorflow as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.inputs import DeployedInput, feed, modes, padding
from tpu_estimator_compat.engine.runtime import functions
from tpu_estimator_compat.engine.topology import Topology
from tpu_estimator_compat.spec import ModeKeys

from .dealing import batches, dealt
from .fakes import ReadyInput


def test_batch_axis_splits_each_tensor_along_its_own(strategy):
    images = np.arange(24).reshape(2, 3, 4)  # H, W, N
    labels = np.arange(4)
    dataset = tf.data.Dataset.from_tensors((images, labels))
    [[first, second]] = dealt(strategy, 2, [dataset], batch_axis=(2, 0))
    np.testing.assert_array_equal(first[0], images[:, :, :2])
    np.testing.assert_array_equal(second[0], images[:, :, 2:])
    assert (first[1], second[1]) == ([0, 1], [2, 3])


def test_nested_structures_keep_static_shapes(strategy):
    dataset = tf.data.Dataset.from_tensors(
        ({"a": tf.zeros([8, 3]), "b": tf.zeros([8])}, tf.ones([8]))
    )
    topology = Topology(strategy(4), tpu_semantics=True)
    input_mode = modes.resolve(ModeKeys.TRAIN, tpu.TPUConfig(), topology)
    spec = deploy([ReadyInput(dataset)], input_mode).element_spec
    assert spec[0]["a"].shape == [2, 3]
    assert spec[0]["b"].shape == [2]
    assert spec[1].shape == [2]


def test_a_batch_that_cannot_be_split_is_refused(strategy):
    with pytest.raises(ValueError, match="cannot be split among 4 replicas"):
        dealt(strategy, 4, [batches(6)])


def test_batch_axis_of_another_length_is_refused(strategy):
    with pytest.raises(ValueError, match="batch_axis"):
        dealt(strategy, 2, [batches(4)], batch_axis=(0, 0))


@pytest.mark.parametrize(("batch_axis", "rank"), [((5, 5), 2), ((-3, 0), 2), (None, 0)])
def test_batch_axis_that_a_tensor_does_not_have_is_refused(strategy, batch_axis, rank):
    dataset = tf.data.Dataset.from_tensors((np.zeros([4, 2][:rank]), np.zeros([4, 2])))
    axis = 0 if batch_axis is None else batch_axis[0]
    with pytest.raises(ValueError, match=rf"is {axis} for .*Tensor.* whose rank is {rank}\."):
        dealt(strategy, 2, [dataset], batch_axis=batch_axis)


def test_prediction_pads_and_marks(strategy):
    dataset = tf.data.Dataset.range(6).batch(4)
    found = dealt(strategy, 2, [dataset], mode=ModeKeys.PREDICT, size=4)
    assert found == [[[[0, 1], [0, 0]], [[2, 3], [0, 0]]], [[[4, 5], [0, 0]], [[0, 0], [1, 1]]]]
    assert padding.pad(dataset, 4).element_spec.is_padding == tf.TensorSpec([4], tf.int32)


def test_more_rows_than_the_batch_size_are_refused(strategy):
    with pytest.raises(ValueError, match="more rows than params"):
        dealt(strategy, 1, [batches(8)], mode=ModeKeys.PREDICT, size=4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="more rows than params"):
        dealt(strategy, 1, [tf.data.Dataset.range(8).batch(8)], mode=ModeKeys.PREDICT, size=4)


def test_waits_before_the_first_batch(strategy, monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    dealt(strategy, 1, [batches(8)], initial_infeed_sleep_secs=7)
    assert slept == [7]


@pytest.mark.parametrize(("length", "one"), [(3, True), (None, False)])
def test_replicas_on_cpus_share_an_iterator(strategy, length, one):
    """But for that of a strategy, which gives empty batches where data ends in mid-step."""
    spec = tf.TensorSpec([length], tf.float32)
    data = tf.data.Dataset.from_generator(lambda: iter([[1.0] * 3] * 3), output_signature=spec)
    feed = DeployedInput([], lambda: [data], strategy(2), spec)
    iterator = iter(feed)
    assert (len(functions.handles_of(iterator)) == 1) == one
    parts = strategy(2).experimental_local_results(feed.next(iterator))
    assert [len(part) for part in parts] == [3, 3]
    if one:
        with pytest.raises(StopIteration):
            feed.next(iterator)
    else:
        parts = strategy(2).experimental_local_results(feed.next(iterator))
        assert [len(part) for part in parts] == [3, 0]
