import pytest
import tensorflow as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.inputs import pipeline_configs
from tpu_estimator_compat.engine.inputs.deployed_input import deploy
from tpu_estimator_compat.engine.inputs.input_mode import Invocation
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.spec import ModeKeys

from .calls import called
from .dealing import GLOBAL_BATCH, FakeStrategy, ReadyInput, batches, calls_of, dealt, resolved

Modes = tpu.InputPipelineConfig

SLICED = {"eval_training_input_configuration": Modes.SLICED}
V2 = {"per_host_input_for_training": Modes.PER_HOST_V2}
BROADCAST = {"per_host_input_for_training": Modes.BROADCAST}

CASES = [(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (8, 2)]


@pytest.mark.parametrize(
    ("mode", "config", "given", "expected"),
    [
        (ModeKeys.TRAIN, {}, [[0, 1], [2, 3]], [[[0], [1]], [[2], [3]]]),
        (ModeKeys.TRAIN, V2, [[0, 1], [2, 3]], [[[0, 1]], [[2, 3]]]),
        (ModeKeys.TRAIN, BROADCAST, [[0, 1, 2, 3]], [[[0, 1, 2, 3]] * 2] * 2),
        (ModeKeys.EVAL, {**V2, **SLICED}, [[0, 1, 2, 3]], [[[0], [1]], [[2], [3]]]),
    ],
)
def test_what_each_of_two_hosts_feeds(strategy, mode, config, given, expected):
    """One process that feeds two hosts, as on a TPU pod: a dataset per host."""
    topology = Topology(strategy(4), tpu_semantics=True, num_hosts=2)
    datasets = [tf.data.Dataset.from_tensors(batch) for batch in given]
    found = deploy(
        [*map(ReadyInput, datasets)],
        pipeline_configs.choose(mode, tpu.TPUConfig(**config), topology),
    )
    dealt_by_host = [[e.numpy().tolist() for e in dataset] for dataset in found.deal()]
    assert dealt_by_host == expected


@pytest.mark.parametrize(
    ("mode", "config", "size", "expected"),
    [
        (ModeKeys.TRAIN, BROADCAST, 4, [[[0, 1, 2, 3]] * 2, [[4, 5, 6, 7]] * 2]),
        (ModeKeys.TRAIN, {}, 4, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
        (ModeKeys.TRAIN, V2, 2, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
        (ModeKeys.EVAL, {**V2, **SLICED}, 4, [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
    ],
)
def test_what_each_of_two_replicas_is_fed(strategy, mode, config, size, expected):
    found = dealt(strategy, 2, [batches(size, 8)], mode=mode, **config)
    assert [[part for [part] in step] for step in found] == expected


TRAIN, EVAL, PREDICT = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT


@pytest.mark.parametrize(("replicas", "hosts"), CASES)
@pytest.mark.parametrize(
    ("modes", "config", "calls", "parts"),
    [
        ([TRAIN, EVAL, PREDICT], BROADCAST, "one", "one"),
        ([EVAL, PREDICT], SLICED, "one", "one"),
        ([EVAL, PREDICT], {**V2, **SLICED}, "one", "one"),
        ([EVAL, PREDICT], {**BROADCAST, **SLICED}, "one", "one"),
        ([TRAIN, EVAL], V2, "hosts", "replicas"),
        *(
            ([TRAIN], {"per_host_input_for_training": alias}, calls, calls)
            for alias, calls in [
                (Modes.PER_HOST_V1, "hosts"),
                (True, "hosts"),
                (Modes.PER_SHARD_V1, "replicas"),
                (False, "replicas"),
            ]
        ),
    ],
)
def test_who_calls_for_which_batch_size(replicas, hosts, modes, config, calls, parts):
    """There is a call for each of `calls`; `parts` divide the global batch size."""
    counts = {"one": 1, "hosts": hosts, "replicas": replicas}
    count, size = counts[calls], GLOBAL_BATCH // counts[parts]
    expected = [(i * hosts // count, i, count, replicas // count, size) for i in range(count)]
    for mode in modes:
        assert calls_of(mode, replicas, hosts, **config) == expected


def test_parallel_get_next_still_gives_every_batch(strategy):
    in_parallel = {"experimental_allow_per_host_v2_parallel_get_next": True}
    found = dealt(strategy, 2, [batches(4)], **V2, **in_parallel)
    assert sorted(x for step in found for replica in step for x in replica[0]) == list(range(16))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Modes.PER_SHARD_V1, [(1, 2, 4, 1, 8), (1, 3, 4, 1, 8)]),
        (Modes.PER_HOST_V1, [(1, 1, 2, 2, 16)]),
        (Modes.PER_HOST_V2, [(1, 1, 2, 2, 8)]),
        (Modes.BROADCAST, [(0, 0, 1, 4, 32)]),
    ],
)
def test_one_process_of_a_cluster_makes_its_own_calls(mode, expected):
    found = calls_of(ModeKeys.TRAIN, 4, 2, this_host=1, per_host_input_for_training=mode)
    assert found == expected


def test_a_replica_that_spans_hosts_is_fed_by_one_of_them():
    assert calls_of(ModeKeys.TRAIN, 2, 4, **V2) == [(0, 0, 4, 1, 16), (1, 1, 4, 1, 16)]


@pytest.mark.parametrize(
    ("config", "size", "same"),
    [
        ({}, 8, False),
        ({"per_host_input_for_training": Modes.PER_SHARD_V1}, 8, False),
        (V2, 8, False),
        (BROADCAST, 32, True),
        ({**V2, **SLICED}, 8, False),
        ({**BROADCAST, **SLICED}, 8, False),
    ],
)
def test_what_model_fn_is_told(config, size, same):
    input_mode = resolved(ModeKeys.EVAL, GLOBAL_BATCH, 4, **config)
    assert input_mode.model_batch_size == size
    assert input_mode.same_for_all is same
    without = resolved(ModeKeys.EVAL, None, 4, **config)
    assert without.model_batch_size is without.input_batch_size is None


@pytest.mark.parametrize(
    ("mode", "called", "third", "refused", "allowed"),
    [
        (
            ModeKeys.EVAL,
            "evaluate",
            "PER_HOST_V2 mode. mode: 2; ",
            [{}],
            [V2, BROADCAST, SLICED, {**V2, **SLICED}],
        ),
        (
            ModeKeys.PREDICT,
            "predict",
            "PER_HOST_V2 mode with num_replicas=1. mode: ",
            [{}, V2],
            [BROADCAST, SLICED, {**V2, **SLICED}],
        ),
        (ModeKeys.TRAIN, "train", "", [], [{}, V2, BROADCAST]),
    ],
)
def test_modes_that_several_hosts_can_run(mode, called, third, refused, allowed):
    for config in refused:
        with pytest.raises(ValueError) as error:
            resolved(mode, 8, 4, hosts=2, **config).check()
        assert str(error.value).startswith(
            f"TPUEstimator.{called} is only supported under three conditions: 1. num_hosts=1; "
            f"2. BROADCAST mode; 3. {third}"
        )
        assert str(error.value).endswith("num_hosts: 2; num_replicas: 4")
    for config in allowed:
        resolved(mode, 8, 4, hosts=2, **config).check()


def test_one_replica_on_several_hosts_predicts():
    resolved(ModeKeys.PREDICT, 8, 1, hosts=2, num_cores_per_replica=8, **V2).check()


@pytest.mark.parametrize("mode", [ModeKeys.TRAIN, ModeKeys.EVAL])
def test_replicas_that_span_hosts(mode):
    cores = {"num_cores_per_replica": 8}
    with pytest.raises(ValueError, match=r"num_cores_per_replica: 8, num_cores_per_host: 4$"):
        resolved(mode, 8, 1, hosts=2, **cores).check()
    resolved(mode, 8, 1, hosts=2, **cores, **V2).check()
    resolved(mode, 8, 1, hosts=2, **cores, **V2, **SLICED).check()


@pytest.mark.parametrize(
    ("mode", "size", "config", "message"),
    [
        (ModeKeys.TRAIN, 9, {}, "train batch size 9 must be divisible by number of replicas 4"),
        (ModeKeys.PREDICT, 9, V2, "predict batch size 9 must be divisible by number of replicas 4"),
        (ModeKeys.EVAL, 9, {**BROADCAST, **SLICED}, "eval batch size 9 must be divisible"),
        (ModeKeys.PREDICT, None, BROADCAST, "predict_batch_size in TPUEstimator constructor"),
        (ModeKeys.EVAL, None, {}, "eval_batch_size in TPUEstimator constructor cannot be `None`"),
    ],
)
def test_sizes_that_replicas_cannot_share(mode, size, config, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        resolved(mode, size, 4, **config).check()


def test_replicas_that_are_fed_the_same_share_nothing():
    resolved(ModeKeys.EVAL, 9, 4, **BROADCAST).check()


def test_the_first_of_several_faults_is_told():
    faults = {"num_shards": 2, "num_cores_per_replica": 8}
    with pytest.raises(ValueError, match="eval batch size 9"):
        resolved(ModeKeys.EVAL, 9, 4, hosts=8, **faults).check()
    with pytest.raises(ValueError, match=r"num_replicas should be \(4\), got \(2\)"):
        resolved(ModeKeys.EVAL, 8, 4, hosts=8, **faults).check()
    with pytest.raises(ValueError, match="num_cores_per_host"):
        resolved(ModeKeys.EVAL, 8, 4, hosts=8, num_cores_per_replica=8).check()


@pytest.mark.parametrize(
    ("mode", "config", "message"),
    [
        (ModeKeys.TRAIN, V2, "PER_HOST_V2 input pipeline configuration"),
        (ModeKeys.PREDICT, V2, "PER_HOST_V2 input pipeline configuration"),
        (ModeKeys.EVAL, {**V2, **SLICED}, "PER_HOST_V2 input pipeline configuration"),
        (ModeKeys.PREDICT, {}, "For mode PREDICT, `input_fn` must return `Dataset`"),
        (ModeKeys.PREDICT, BROADCAST, "For mode PREDICT, `input_fn` must return `Dataset`"),
        (ModeKeys.PREDICT, SLICED, "For mode PREDICT, `input_fn` must return `Dataset`"),
        (ModeKeys.TRAIN, {}, None),
        (ModeKeys.EVAL, SLICED, None),
    ],
)
def test_tensors_in_place_of_a_dataset(mode, config, message):
    given = called(lambda: tf.zeros([4, 2]))
    input_mode = resolved(mode, 4, 1, **config)
    if message is None:
        input_mode.check_called(given)
        return
    with pytest.raises(TypeError, match=message):
        input_mode.check_called(given)


def test_batch_axis_is_checked_before_anything_is_split():
    given = called(lambda: (tf.zeros([4, 2]), tf.zeros([4])))
    topology = Topology(FakeStrategy(1), True)
    input_mode = pipeline_configs.choose(ModeKeys.TRAIN, tpu.TPUConfig(), topology, 4, [5, 5])
    with pytest.raises(ValueError, match=r"is 5 for TensorSpec\(shape=\(4, 2\).* rank is 2\."):
        input_mode.check_called(given)


def test_off_tpu_every_host_calls_and_batch_sizes_are_whole():
    plain = resolved(ModeKeys.TRAIN, 7, 4, 2, tpu_semantics=False, **BROADCAST)
    assert plain.invocations() == [Invocation(0, 0), Invocation(1, 1)]
    assert (plain.input_batch_size, plain.model_batch_size) == (7, 7)
    assert not plain.same_for_all
    plain.check()


def test_sliced_is_for_tpu():
    with pytest.raises(ValueError, match="SLICED mode only works on use_tpu = True"):
        resolved(ModeKeys.EVAL, 8, 1, tpu_semantics=False, **SLICED).check()
    resolved(ModeKeys.TRAIN, 8, 1, tpu_semantics=False, **SLICED).check()


@pytest.mark.parametrize("mode", [Modes.PER_SHARD_V1, Modes.PER_HOST_V1, None])
def test_per_shard_becomes_per_host_outside_training(mode):
    found = calls_of(ModeKeys.EVAL, 4, 1, per_host_input_for_training=mode)
    assert found == [(0, 0, 1, 4, GLOBAL_BATCH)]


def test_model_parallelism_goes_with_input_per_host():
    config = tpu.TPUConfig(num_cores_per_replica=2, per_host_input_for_training=Modes.PER_SHARD_V1)
    with pytest.raises(ValueError, match="Model parallelism only supports per host input"):
        pipeline_configs.check_config(config)
    pipeline_configs.check_config(config._replace(num_cores_per_replica=None))
    pipeline_configs.check_config(config._replace(per_host_input_for_training=Modes.PER_HOST_V1))


def test_per_shard_v1_gives_every_replica_its_own_dataset(strategy):
    datasets = [batches(4, 8), batches(4, 8).map(lambda x: x + 100)]
    found = dealt(strategy, 2, datasets, per_host_input_for_training=Modes.PER_SHARD_V1)
    assert found == [
        [[[0, 1, 2, 3]], [[100, 101, 102, 103]]],
        [[[4, 5, 6, 7]], [[104, 105, 106, 107]]],
    ]


@pytest.mark.parametrize("replicas", [2, 4])
def test_a_last_group_that_is_not_whole_is_dropped(strategy, replicas):
    found = dealt(strategy, replicas, [batches(2, 10)], **V2)
    assert len(found) == 5 // replicas


def test_sliced_says_nothing_of_training():
    found = calls_of(ModeKeys.TRAIN, 4, 1, **V2, **SLICED)
    assert found == calls_of(ModeKeys.TRAIN, 4, 1, **V2)
