"""How a TPU is found and connected to, against recorded fakes: no TPU is involved."""

import pytest
import tensorflow as tf
from fakes import FakeResolver, FakeTPU

import tpu_estimator_compat as tpu
from tpu_estimator_compat import topology
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.topology import tpu_system


@pytest.fixture(autouse=True)
def no_tpu_yet(monkeypatch):
    monkeypatch.setattr(tpu_system, "_strategies", {})
    monkeypatch.setattr(tpu_system, "_topologies", {})
    for name in tpu_system._ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def resolvers(monkeypatch):
    """The arguments of every resolver that is made; each gives a fake one."""
    made = []

    class Recorded(FakeResolver):
        def __init__(self, **kwargs):
            made.append(kwargs)
            super().__init__(kwargs["tpu"] or "grpc://from-environment")

    monkeypatch.setattr(tpu_system, "TPUClusterResolver", Recorded)
    return made


def test_a_resolver_in_the_config(monkeypatch):
    fake = FakeTPU(monkeypatch)
    config = tpu.RunConfig(cluster=FakeResolver())
    where = topology.resolve(config, ModeKeys.TRAIN, tpu_semantics=True)
    assert fake.calls == [
        ("connect", "grpc://tpu:8470"),
        ("initialize", "grpc://tpu:8470"),
        ("strategy", "grpc://tpu:8470", None),
    ]
    assert (where.num_replicas, where.num_hosts, where.tpu_semantics) == (8, 1, True)
    # Initialising a TPU again would lose its variables: evaluation uses the same strategy.
    again = topology.resolve(config, ModeKeys.EVAL, tpu_semantics=True)
    assert again.strategy is where.strategy
    assert len(fake.calls) == 3


def test_several_hosts(monkeypatch):
    FakeTPU(monkeypatch, hosts=4)
    config = tpu.RunConfig(cluster=FakeResolver())
    where = topology.resolve(config, ModeKeys.TRAIN, tpu_semantics=True)
    assert (where.num_replicas, where.num_hosts, where.replicas_per_host) == (32, 4, 8)
    assert where.hosts == [0, 1, 2, 3]  # one process feeds them all


def test_cores_that_share_a_replica(monkeypatch):
    fake = FakeTPU(monkeypatch)
    tpu_config = tpu.TPUConfig(num_cores_per_replica=2)
    config = tpu.RunConfig(cluster=FakeResolver(), tpu_config=tpu_config)
    where = topology.resolve(config, ModeKeys.TRAIN, tpu_semantics=True)
    assert fake.calls[2:] == [
        ("assign", (1, 1, 1, 2), 4),
        ("strategy", "grpc://tpu:8470", "assignment"),
    ]
    assert where.num_replicas == 4


@pytest.mark.parametrize("cores", sorted(tpu_system._COMPUTATION_SHAPES))
def test_computation_shapes_have_as_many_cores(cores):
    assert tf.reduce_prod(tpu_system._COMPUTATION_SHAPES[cores]) == cores


def test_too_few_cores(monkeypatch):
    FakeTPU(monkeypatch, cores_per_host=2)
    tpu_config = tpu.TPUConfig(num_cores_per_replica=4)
    config = tpu.RunConfig(cluster=FakeResolver(), tpu_config=tpu_config)
    with pytest.raises(ValueError, match="num_cores_per_replica: 4, num cores in the system: 2"):
        topology.resolve(config, ModeKeys.TRAIN, tpu_semantics=True)


def test_no_cores(monkeypatch):
    FakeTPU(monkeypatch, cores_per_host=0)
    with pytest.raises(RuntimeError, match="Cannot find any TPU cores in the system"):
        tpu_system.strategy(FakeResolver())


def test_master_and_evaluation_master(monkeypatch, resolvers):
    FakeTPU(monkeypatch)
    config = tpu.RunConfig(
        master="grpc://train:1",
        evaluation_master="grpc://eval:2",
        tpu_config=tpu.TPUConfig(tpu_job_name="tpu_worker"),
    )
    for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
        topology.resolve(config, mode, tpu_semantics=True)
    assert resolvers == [
        {"tpu": "grpc://train:1", "job_name": "tpu_worker"},
        {"tpu": "grpc://eval:2", "job_name": "tpu_worker"},
        {"tpu": "grpc://train:1", "job_name": "tpu_worker"},
    ]


@pytest.mark.parametrize(
    ("name", "value", "asked"),
    [
        ("TPU_NAME", "my-tpu", None),
        ("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "grpc://10.0.0.1:8470", None),
        ("COLAB_TPU_ADDR", "10.0.0.2:8470", "grpc://10.0.0.2:8470"),
    ],
)
def test_the_environment(monkeypatch, resolvers, name, value, asked):
    FakeTPU(monkeypatch)
    monkeypatch.setenv(name, value)
    where = topology.resolve(tpu.RunConfig(), ModeKeys.TRAIN, tpu_semantics=True)
    assert where.num_replicas == 8
    assert resolvers == [{"tpu": asked}]


def test_explicit_comes_first(monkeypatch, resolvers, strategy):
    monkeypatch.setenv("TPU_NAME", "my-tpu")
    config = tpu.RunConfig(train_distribute=strategy(2))
    for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
        assert topology.resolve(config, mode, tpu_semantics=True).num_replicas == 2
    assert resolvers == []


def test_without_tpu_semantics_no_tpu_is_looked_for(monkeypatch, resolvers):
    monkeypatch.setenv("TPU_NAME", "my-tpu")
    where = topology.resolve(tpu.RunConfig(), ModeKeys.TRAIN, tpu_semantics=False)
    assert where.num_replicas == 1
    assert resolvers == []


def test_unreachable(monkeypatch):
    FakeTPU(monkeypatch)

    def refuse(resolver):
        raise tf.errors.UnavailableError(None, None, "connection refused")

    monkeypatch.setattr(tf.config, "experimental_connect_to_cluster", refuse)
    message = "Cannot reach the TPU at 'grpc://tpu:8470'.*use_tpu=False.*connection refused"
    with pytest.raises(RuntimeError, match=message):
        tpu_system.strategy(FakeResolver())


def test_no_tpu_in_this_machine(monkeypatch):
    """`TPUClusterResolver("local")` has an empty address."""
    FakeTPU(monkeypatch)
    local = FakeResolver()
    monkeypatch.setattr(local, "master", lambda: "")

    def refuse(resolver):
        raise tf.errors.NotFoundError(None, None, "no kernels")

    monkeypatch.setattr(tf.config, "experimental_connect_to_cluster", refuse)
    with pytest.raises(RuntimeError, match=r"Cannot find a TPU in this machine\. .*no kernels"):
        tpu_system.strategy(local)


def test_a_name_that_nobody_knows(monkeypatch):
    class Unknown(FakeResolver):
        def __init__(self, **kwargs):
            raise ValueError(f"no TPU {kwargs}")

    monkeypatch.setattr(tpu_system, "TPUClusterResolver", Unknown)
    monkeypatch.setenv("TPU_NAME", "nonesuch")
    with pytest.raises(RuntimeError, match="Cannot reach the TPU at 'TPU_NAME=nonesuch'"):
        topology.resolve(tpu.RunConfig(), ModeKeys.TRAIN, tpu_semantics=True)


def test_tpu_strategy_on_a_tpu(monkeypatch):
    fake = FakeTPU(monkeypatch)
    resolver = FakeResolver()
    made = tpu.TPUStrategy(resolver, steps_per_run=20, device_assignment="mine")
    assert fake.calls == [
        ("connect", "grpc://tpu:8470"),
        ("initialize", "grpc://tpu:8470"),
        ("strategy", "grpc://tpu:8470", "mine"),
    ]
    assert made.cluster_resolver is resolver
    assert (made.num_replicas_in_sync, made.steps_per_run) == (8, 20)


def test_tpu_strategy_without_a_tpu():
    made = tpu.TPUStrategy(steps_per_run=3)
    assert made.cluster_resolver is None
    assert made.num_replicas_in_sync == len(tf.config.list_logical_devices("CPU"))
    with made.scope():
        assert tf.distribute.get_strategy() is made.strategy
    config = tpu.RunConfig(train_distribute=made)
    where = topology.resolve(config, ModeKeys.TRAIN, tpu_semantics=False)
    assert where.strategy is made.strategy


def test_tpu_strategy_refuses_senseless_steps():
    with pytest.raises(ValueError, match="steps_per_run must be positive; got 0"):
        tpu.TPUStrategy(steps_per_run=0)
