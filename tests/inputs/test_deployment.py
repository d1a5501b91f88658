"""How batches are dealt to replicas, in every mode."""

import time

import numpy as np
import pytest
import tensorflow as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat.inputs import feed, modes
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.topology import Topology

Modes = tpu.InputPipelineConfig


def dealt(strategy, replicas, datasets, mode=ModeKeys.TRAIN, batch_axis=None, size=None, **config):
    """What each replica gets in each step: a list of steps of lists of replicas."""
    topology = Topology(strategy(replicas), tpu_semantics=True)
    input_mode = modes.resolve(mode, tpu.TPUConfig(**config), topology, size, batch_axis)
    found = feed(datasets, input_mode)
    steps = []
    iterator = iter(found)
    while True:
        try:
            element = found.next(iterator)
        except (StopIteration, tf.errors.OutOfRangeError):
            return steps
        local = topology.strategy.experimental_local_results
        flat = [local(part) for part in tf.nest.flatten(element, expand_composites=False)]
        steps.append([[p.numpy().tolist() for p in parts] for parts in zip(*flat, strict=True)])


def batches(size, count=16):
    """The numbers from 0 in batches."""
    return tf.data.Dataset.range(count).batch(size, drop_remainder=True)


def test_per_host_v1_splits_the_host_batch(strategy):
    assert dealt(strategy, 2, [batches(8)]) == [
        [[[0, 1, 2, 3]], [[4, 5, 6, 7]]],
        [[[8, 9, 10, 11]], [[12, 13, 14, 15]]],
    ]


def test_per_host_v2_deals_batches_in_turn(strategy):
    found = dealt(strategy, 2, [batches(4)], per_host_input_for_training=Modes.PER_HOST_V2)
    assert found[0] == [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]
    assert found[1] == [[[8, 9, 10, 11]], [[12, 13, 14, 15]]]


def test_per_shard_v1_gives_every_replica_its_own_dataset(strategy):
    datasets = [batches(4, 8), batches(4, 8).map(lambda x: x + 100)]
    found = dealt(strategy, 2, datasets, per_host_input_for_training=Modes.PER_SHARD_V1)
    assert found == [
        [[[0, 1, 2, 3]], [[100, 101, 102, 103]]],
        [[[4, 5, 6, 7]], [[104, 105, 106, 107]]],
    ]


def test_broadcast_gives_everyone_everything(strategy):
    found = dealt(strategy, 4, [batches(8)], per_host_input_for_training=Modes.BROADCAST)
    assert found == [[[list(range(8))]] * 4, [[list(range(8, 16))]] * 4]


def test_sliced_splits_in_evaluation(strategy):
    found = dealt(
        strategy,
        2,
        [batches(8)],
        mode=ModeKeys.EVAL,
        per_host_input_for_training=Modes.PER_HOST_V2,
        eval_training_input_configuration=Modes.SLICED,
    )
    assert found[0] == [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]


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
    spec = feed([dataset], input_mode).element_spec
    assert spec[0]["a"].shape == [2, 3]
    assert spec[0]["b"].shape == [2]
    assert spec[1].shape == [2]


@pytest.mark.parametrize("replicas", [2, 4])
def test_a_last_group_that_is_not_whole_is_dropped(strategy, replicas):
    found = dealt(
        strategy, replicas, [batches(2, 10)], per_host_input_for_training=Modes.PER_HOST_V2
    )
    assert len(found) == 5 // replicas


def test_prediction_pads_and_marks(strategy):
    dataset = tf.data.Dataset.range(6).batch(4)
    found = dealt(strategy, 2, [dataset], mode=ModeKeys.PREDICT, size=4)
    assert found == [
        [[[0, 1], [0, 0]], [[2, 3], [0, 0]]],
        [[[4, 5], [0, 0]], [[0, 0], [1, 1]]],
    ]


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


def test_more_rows_than_the_batch_size_are_refused(strategy):
    with pytest.raises(ValueError, match="more rows than params"):
        dealt(strategy, 1, [batches(8)], mode=ModeKeys.PREDICT, size=4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="more rows than params"):
        dealt(strategy, 1, [tf.data.Dataset.range(8).batch(8)], mode=ModeKeys.PREDICT, size=4)


SLICED = {
    "per_host_input_for_training": Modes.PER_HOST_V2,
    "eval_training_input_configuration": Modes.SLICED,
}


@pytest.mark.parametrize(
    ("mode", "config", "given", "expected"),
    [
        (ModeKeys.TRAIN, {}, [[0, 1], [2, 3]], [[[0], [1]], [[2], [3]]]),
        (
            ModeKeys.TRAIN,
            {"per_host_input_for_training": Modes.PER_HOST_V2},
            [[0, 1], [2, 3]],
            [[[0, 1]], [[2, 3]]],
        ),
        (
            ModeKeys.TRAIN,
            {"per_host_input_for_training": Modes.BROADCAST},
            [[0, 1, 2, 3]],
            [[[0, 1, 2, 3]] * 2] * 2,
        ),
        (ModeKeys.EVAL, SLICED, [[0, 1, 2, 3]], [[[0], [1]], [[2], [3]]]),
    ],
)
def test_what_each_of_two_hosts_feeds(strategy, mode, config, given, expected):
    """One process that feeds two hosts, as on a TPU pod: a dataset per host."""
    topology = Topology(strategy(4), tpu_semantics=True, num_hosts=2)
    datasets = [tf.data.Dataset.from_tensors(batch) for batch in given]
    found = feed(datasets, modes.resolve(mode, tpu.TPUConfig(**config), topology))
    dealt_by_host = [[e.numpy().tolist() for e in dataset] for dataset in found.datasets]
    assert dealt_by_host == expected


def test_waits_before_the_first_batch(strategy, monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    dealt(strategy, 1, [batches(8)], initial_infeed_sleep_secs=7)
    assert slept == [7]


def test_parallel_get_next_still_gives_every_batch(strategy):
    found = dealt(
        strategy,
        2,
        [batches(4)],
        per_host_input_for_training=Modes.PER_HOST_V2,
        experimental_allow_per_host_v2_parallel_get_next=True,
    )
    assert sorted(x for step in found for replica in step for x in replica[0]) == list(range(16))
