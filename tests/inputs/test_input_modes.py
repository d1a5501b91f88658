"""How often, where and with which batch size input_fn is called, for every number of replicas."""

import numpy as np
import pytest
import tensorflow as tf
from fakes import FakeStrategy

import tpu_estimator_compat as tpu
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.topology import Topology

Modes = tpu.InputPipelineConfig
GLOBAL_BATCH = 32
FEATURES = np.zeros([GLOBAL_BATCH, 2], np.float32)


def calls_of(mode, replicas, hosts, this_host=None, **tpu_config):
    """(host, index, calls in all, replicas fed, batch size) of each call of input_fn."""
    where = Topology(FakeStrategy(replicas), True, hosts, this_host)
    est = tpu.TPUEstimator(
        lambda features, params: None,
        config=tpu.RunConfig(tpu_config=tpu.TPUConfig(**tpu_config)),
        train_batch_size=GLOBAL_BATCH,
        eval_batch_size=GLOBAL_BATCH,
        predict_batch_size=GLOBAL_BATCH,
    )
    calls = []

    def input_fn(params):
        context = params["context"]
        device, index, total, fed = context.current_input_fn_deployment()
        assert device == f"/replica:0/task:{context.current_host}/device:CPU:0"
        assert context.num_hosts == hosts
        assert context.num_replicas == replicas
        calls.append((context.current_host, index, total, fed, params["batch_size"]))
        return tf.data.Dataset.from_tensors(FEATURES[: params["batch_size"]])

    est._feed(input_fn, mode, where)
    return calls


CASES = [(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (8, 2)]
EVERY = pytest.mark.parametrize(("replicas", "hosts"), CASES)


@EVERY
@pytest.mark.parametrize("alias", [Modes.PER_SHARD_V1, False])
def test_per_shard_v1(replicas, hosts, alias):
    share = replicas // hosts
    assert calls_of(ModeKeys.TRAIN, replicas, hosts, per_host_input_for_training=alias) == [
        (core // share, core, replicas, 1, GLOBAL_BATCH // replicas) for core in range(replicas)
    ]


@EVERY
@pytest.mark.parametrize("alias", [Modes.PER_HOST_V1, True])
def test_per_host_v1(replicas, hosts, alias):
    assert calls_of(ModeKeys.TRAIN, replicas, hosts, per_host_input_for_training=alias) == [
        (host, host, hosts, replicas // hosts, GLOBAL_BATCH // hosts) for host in range(hosts)
    ]


@EVERY
@pytest.mark.parametrize("mode", [ModeKeys.TRAIN, ModeKeys.EVAL])
def test_per_host_v2(replicas, hosts, mode):
    found = calls_of(mode, replicas, hosts, per_host_input_for_training=Modes.PER_HOST_V2)
    assert found == [
        (host, host, hosts, replicas // hosts, GLOBAL_BATCH // replicas) for host in range(hosts)
    ]


@EVERY
@pytest.mark.parametrize("mode", [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT])
def test_broadcast(replicas, hosts, mode):
    found = calls_of(mode, replicas, hosts, per_host_input_for_training=Modes.BROADCAST)
    assert found == [(0, 0, 1, replicas, GLOBAL_BATCH)]


@EVERY
@pytest.mark.parametrize("mode", [ModeKeys.EVAL, ModeKeys.PREDICT])
def test_sliced(replicas, hosts, mode):
    found = calls_of(
        mode,
        replicas,
        hosts,
        per_host_input_for_training=Modes.PER_HOST_V2,
        eval_training_input_configuration=Modes.SLICED,
    )
    assert found == [(0, 0, 1, replicas, GLOBAL_BATCH)]


@pytest.mark.parametrize("mode", [Modes.PER_SHARD_V1, Modes.PER_HOST_V1])
def test_per_shard_becomes_per_host_outside_training(mode):
    found = calls_of(ModeKeys.EVAL, 4, 1, per_host_input_for_training=mode)
    assert found == [(0, 0, 1, 4, GLOBAL_BATCH)]


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
    found = calls_of(ModeKeys.TRAIN, 2, 4, per_host_input_for_training=Modes.PER_HOST_V2)
    assert found == [(0, 0, 4, 1, 16), (1, 1, 4, 1, 16)]


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        (ModeKeys.EVAL, "TPUEstimator.evaluate is only supported under three conditions"),
        (ModeKeys.PREDICT, "TPUEstimator.predict is only supported under three conditions"),
    ],
)
def test_modes_that_several_hosts_cannot_evaluate_or_predict_with(mode, message):
    from tpu_estimator_compat.topology import BatchSizes

    where = Topology(FakeStrategy(4), True, 2)
    sizes = BatchSizes(8, 8, 8)
    with pytest.raises(ValueError, match=message):
        sizes.check(mode, where, tpu.TPUConfig())
    sizes.check(mode, where, tpu.TPUConfig(per_host_input_for_training=Modes.BROADCAST))
    sizes.check(ModeKeys.TRAIN, where, tpu.TPUConfig())
