import pytest
import tensorflow as tf
from support.simulated_tpu.runtime import SimulatedTPU, simulated

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine import topology
from tpu_estimator_compat.engine.topology import tpu_system
from tpu_estimator_compat.spec import ModeKeys


def test_cores_in_this_machine(chip):
    where = topology.resolve(tpu.RunConfig(), ModeKeys.TRAIN, tpu_semantics=True)
    assert isinstance(where.strategy, tf.distribute.TPUStrategy)
    assert (where.num_replicas, where.num_hosts, where.hosts) == (2, 1, [0])
    # Initialising a TPU again would lose its variables: evaluation uses the same strategy.
    again = topology.resolve(tpu.RunConfig(), ModeKeys.EVAL, tpu_semantics=True)
    assert again.strategy is where.strategy


def test_a_resolver_in_the_config(chip):
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver("local")
    config = tpu.RunConfig(cluster=resolver)
    where = topology.resolve(config, ModeKeys.TRAIN, tpu_semantics=True)
    assert where.num_replicas == 2


def test_cores_that_share_a_replica(chip):
    config = tpu.RunConfig(tpu_config=tpu.TPUConfig(num_cores_per_replica=2))
    where = topology.resolve(config, ModeKeys.TRAIN, tpu_semantics=True)
    assert where.num_replicas == 1


def test_chips_of_one_core():
    with simulated(SimulatedTPU((1, 2, 1, 1))):
        config = tpu.RunConfig(tpu_config=tpu.TPUConfig(num_cores_per_replica=2))
        where = topology.resolve(config, ModeKeys.TRAIN, tpu_semantics=True)
        assert where.num_replicas == 1


def test_too_few_cores(chip):
    config = tpu.RunConfig(tpu_config=tpu.TPUConfig(num_cores_per_replica=4))
    with pytest.raises(ValueError, match="num_cores_per_replica: 4, num cores in the system: 2"):
        topology.resolve(config, ModeKeys.TRAIN, tpu_semantics=True)


def test_the_strategy_is_made_eagerly_whatever_the_script_does(chip):
    with tf.Graph().as_default():
        where = topology.resolve(tpu.RunConfig(), ModeKeys.TRAIN, tpu_semantics=True)
    assert where.num_replicas == 2


def test_master_and_evaluation_master():
    config = tpu.RunConfig(
        master="grpc://train:1",
        evaluation_master="grpc://eval:2",
        tpu_config=tpu.TPUConfig(tpu_job_name="tpu_worker"),
    )
    found = [
        tpu_system.find(config, mode) for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
    ]
    assert [resolver.master() for resolver in found] == [
        "grpc://train:1",
        "grpc://eval:2",
        "grpc://train:1",
    ]
    assert {resolver.get_job_name() for resolver in found} == {"tpu_worker"}


def test_a_local_master_is_this_process():
    config = tpu.RunConfig(master="local", evaluation_master="local")
    assert config.master == "local"
    for mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
        assert tpu_system.find(config, mode) is None
        assert not tpu_system.is_seen(config, mode)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TPU_NAME", "grpc://10.0.0.3:8470"),
        ("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "grpc://10.0.0.3:8470"),
        ("COLAB_TPU_ADDR", "10.0.0.3:8470"),
    ],
)
def test_the_environment(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    found = tpu_system.find(tpu.RunConfig(), ModeKeys.TRAIN)
    assert found.master() == "grpc://10.0.0.3:8470"


def test_nobody_listens(monkeypatch):
    """TensorFlow would wait for minutes."""
    monkeypatch.setattr(tpu_system, "_CONNECTION_SECONDS", 2.0)
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver("grpc://localhost:1")
    message = "Cannot reach the TPU at 'grpc://localhost:1'.*use_tpu=False.*takes no connection"
    with pytest.raises(RuntimeError, match=message):
        tpu_system.strategy(resolver)


def test_no_tpu_in_this_machine():
    """`TPUClusterResolver("local")` has an empty address; TensorFlow's own words say the rest."""
    local = tf.distribute.cluster_resolver.TPUClusterResolver("local")
    with pytest.raises(RuntimeError, match=r"Cannot find a TPU in this machine\. .*TPU"):
        tpu_system.strategy(local)


def test_a_name_that_nobody_knows(monkeypatch):
    monkeypatch.setenv("TPU_NAME", "grpc://")
    monkeypatch.setattr(tpu_system, "TPUClusterResolver", _refusing)
    with pytest.raises(RuntimeError, match=r"Cannot reach the TPU at 'TPU_NAME=grpc://'.*no TPU"):
        tpu_system.in_environment()


def _refusing(**kwargs):
    raise ValueError(f"no TPU {kwargs}")


def test_a_tpu_system_without_a_tpu(monkeypatch):
    """A TensorFlow for TPUs lists that device on any machine."""
    listed = tf.config.list_physical_devices

    def with_system(kind=None):
        system = tf.config.PhysicalDevice("/physical_device:TPU_SYSTEM:0", "TPU_SYSTEM")
        return [*listed(kind), *([system] if kind in (None, "TPU_SYSTEM") else [])]

    monkeypatch.setattr(tf.config, "list_physical_devices", with_system)
    assert tpu_system.in_environment() is None


@pytest.mark.parametrize(
    ("vendor", "device", "chips"),
    [("0x1ae0", "0x0063", 1), ("0x1ae0", "0x0042", 0), ("0x10de", "0x0063", 0)],
)
def test_attached_chips(tmp_path, vendor, device, chips):
    for name, number in (("vendor", vendor), ("device", device)):
        (tmp_path / "0000:00:04.0").mkdir(exist_ok=True)
        (tmp_path / "0000:00:04.0" / name).write_text(f"{number}\n")
    assert tpu_system.attached_chips(str(tmp_path)) == chips


def test_chips_that_tensorflow_does_not_see_are_named(monkeypatch, caplog):
    monkeypatch.setattr(tpu_system, "attached_chips", lambda: 4)
    tpu_system._warn_of_unused_chips.cache_clear()
    monkeypatch.setattr(tf.get_logger(), "propagate", True)
    assert tpu_system.in_environment() is None
    assert "This machine has 4 TPU chip(s), but TensorFlow" in caplog.text
    tpu_system._warn_of_unused_chips.cache_clear()
