import time

import numpy as np
import pytest
import tensorflow as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.functions import functions
from tpu_estimator_compat.engine.inputs import padding, pipeline_configs
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput, deploy
from tpu_estimator_compat.engine.inputs.partitioning import partition_dims
from tpu_estimator_compat.engine.inputs.tpu_context import TPUContext
from tpu_estimator_compat.engine.topology import chosen_topology
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.spec import ModeKeys

from .dealing import ReadyInput, batches, dealt


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
    input_mode = pipeline_configs.choose(ModeKeys.TRAIN, tpu.TPUConfig(), topology)
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


@pytest.mark.parametrize("length", [3, None])
@pytest.mark.parametrize("share", [True, False])
def test_the_data_ends_where_one_replica_has_none(strategy, monkeypatch, length, share):
    """Whether replicas share an iterator, as on CPUs, or a strategy's iterator feeds them."""
    if not share:
        monkeypatch.setattr(DeployedInput, "_take_turns", lambda *_: False)
    spec = tf.TensorSpec([length], tf.float32)
    data = tf.data.Dataset.from_generator(lambda: iter([[1.0] * 3] * 3), output_signature=spec)
    deployed_input = DeployedInput([], lambda: [data], strategy(2), spec)
    iterator = iter(deployed_input)
    assert (len(functions.handles_of(iterator)) == 1) == share
    parts = strategy(2).experimental_local_results(deployed_input.next(iterator))
    assert [len(part) for part in parts] == [3, 3]
    with pytest.raises(StopIteration):
        deployed_input.next(iterator)


IMAGES = tf.TensorSpec([8, 6, 6, 3])
LABELS = tf.TensorSpec([8], tf.int32)


@pytest.mark.parametrize(
    ("features", "labels", "dims", "expected"),
    [
        (IMAGES, LABELS, [[1, 2, 2, 1]], [[1, 2, 2, 1], None]),
        (IMAGES, LABELS, [[1, 4, 1, 1], None], [[1, 4, 1, 1], None]),
        (IMAGES, None, [[1, 1, 1, 1]], [[1, 1, 1, 1]]),
        (
            {"b": IMAGES, "a": LABELS},
            LABELS,
            [{"a": None, "b": [2, 2, 1, 1]}, [4]],
            [None, [2, 2, 1, 1], [4]],
        ),
        ((IMAGES, IMAGES), None, [([1, 2, 2, 1], None)], [[1, 2, 2, 1], None]),
    ],
)
def test_dims_by_tensor(features, labels, dims, expected):
    assert partition_dims(features, labels, dims, 4) == expected


@pytest.mark.parametrize(
    ("features", "labels", "dims", "message"),
    [
        ({"a": IMAGES}, None, [{"b": None}], r"\[0\] mismatched feature keys. Expected \['a'\]"),
        (IMAGES, {"a": LABELS}, [None, {"b": None}], r"\[1\] mismatched label keys"),
        ((IMAGES, IMAGES), None, [(None,)], r"\[0\] mismatched the structure of features"),
        (IMAGES, None, [[1, 3, 1, 1]], r"dim = \[1, 3, 1, 1\], num_cores_per_replica = 4"),
        (IMAGES, None, [[1, -4, -1, 1]], "All input partition dims must be >= 1"),
        (IMAGES, None, [[2, 2]], "must have the same number of dimensions as the `Tensor`"),
    ],
)
def test_refused(features, labels, dims, message):
    with pytest.raises(ValueError, match=message):
        partition_dims(features, labels, dims, 4)


def estimator(directory, dims):
    def model_fn(features, labels, mode, params):
        loss = tf.reduce_mean(features) + 0 * tf.reduce_sum(tf.cast(labels, tf.float32))
        weight = tf.compat.v1.get_variable("weight", [], initializer=tf.zeros_initializer())
        loss += weight**2
        step = tf.compat.v1.train.get_global_step()
        optimizer = tpu.CrossShardOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, step)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    tpu_config = tpu.TPUConfig(
        num_cores_per_replica=2,
        per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2,
        input_partition_dims=dims,
    )
    config = tpu.RunConfig(model_dir=str(directory), tpu_config=tpu_config)
    return tpu.TPUEstimator(model_fn, config=config, train_batch_size=8)


def input_fn(params):
    images = np.ones([params["batch_size"], 7, 6, 3], np.float32)  # 7 rows on 2 cores: uneven
    labels = np.zeros([params["batch_size"]], np.int32)
    return tf.data.Dataset.from_tensors((images, labels)).repeat()


def test_without_a_tpu_each_replica_computes_whole_tensors(tmp_path, caplog):
    caplog.set_level("INFO", logger="tensorflow")
    est = estimator(tmp_path, [[1, 2, 1, 1], None])
    est.train(input_fn, max_steps=3)
    assert est.get_variable_value("global_step") == 3
    assert "each replica computes whole tensors" in caplog.text


def test_the_structure_is_checked_before_training(tmp_path):
    with pytest.raises(ValueError, match=r"num_cores_per_replica = 2"):
        estimator(tmp_path, [[1, 3, 1, 1]]).train(input_fn, max_steps=3)


@pytest.fixture
def context(strategy):
    topology = Topology(strategy(4), True)
    return TPUContext(pipeline_configs.choose(tpu.ModeKeys.TRAIN, tpu.TPUConfig(), topology))


def test_the_device_of_a_host_is_found_by_host_or_by_replica(context):
    place = context.tpu_host_placement_function
    assert place(0) == place(host_id=0) == place(replica_id=3) == "/replica:0/task:0/device:CPU:0"
    with pytest.raises(RuntimeError, match="replica_id and host_id can have only one non-None"):
        place(host_id=0, replica_id=0)
    with pytest.raises(RuntimeError, match="can have only one"):
        place()


def test_the_device_of_a_replica(context):
    assert context.device_for_replica(3) == ("/task:0/device:CPU:0", 3)


@pytest.mark.parametrize(("cores", "replicas"), [(1, 4), (2, 2), (4, 1), (8, 1)])
def test_logical_cpus_stand_for_cores(cores, replicas):
    """Four of them make as many replicas as four cores of a TPU would."""
    tpu_config = tpu.TPUConfig(num_cores_per_replica=cores, num_shards=replicas)
    topology = chosen_topology.resolve(
        tpu.RunConfig(tpu_config=tpu_config), tpu.ModeKeys.TRAIN, tpu_semantics=True
    )
    assert topology.num_replicas == replicas


def test_model_parallelism_has_an_assignment_without_a_tpu(strategy):
    """None without model parallelism, as in the original."""
    topology = Topology(strategy(4), True)
    plain = TPUContext(pipeline_configs.choose(tpu.ModeKeys.TRAIN, tpu.TPUConfig(), topology))
    assert plain.device_assignment is None
    tpu_config = tpu.TPUConfig(num_cores_per_replica=1)
    context = TPUContext(pipeline_configs.choose(tpu.ModeKeys.TRAIN, tpu_config, topology))
    assert context.device_assignment.num_replicas == 4
    assert context.device_assignment.tpu_device(3) == "/task:0/device:TPU:3"
