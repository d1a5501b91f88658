import subprocess
import sys

import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn
from support.simulated_tpu.runtime import SimulatedTPU, simulated

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.jax.topology import JaxTopology
from tpu_estimator_compat.engine.topology import chosen_topology, tpu_system
from tpu_estimator_compat.environment import RUNTIME_VARIABLE
from tpu_estimator_compat.spec import ModeKeys


def topology_of(mode="train", tpu_semantics=True, **config):
    return chosen_topology.resolve(tpu.RunConfig(**config), mode, tpu_semantics=tpu_semantics)


def test_cores_in_this_machine(chip):
    where = topology_of()
    assert isinstance(where.strategy, tf2.distribute.TPUStrategy)
    assert (where.num_replicas, where.num_hosts, where.hosts) == (2, 1, [0])
    # Initialising a TPU again would lose its variables: evaluation uses the same strategy.
    again = topology_of(ModeKeys.EVAL)
    assert again.strategy is where.strategy


def test_a_resolver_in_the_config(chip):
    resolver = tf2.distribute.cluster_resolver.TPUClusterResolver("local")
    assert topology_of(cluster=resolver).num_replicas == 2


@pytest.mark.parametrize("mesh", [(1, 1, 1, 2), (1, 2, 1, 1)])
def test_cores_that_share_a_replica(mesh):
    with simulated(SimulatedTPU(mesh)):
        assert topology_of(tpu_config=tpu.TPUConfig(num_cores_per_replica=2)).num_replicas == 1


def test_too_few_cores(chip):
    with pytest.raises(ValueError, match="num_cores_per_replica: 4, num cores in the system: 2"):
        topology_of(tpu_config=tpu.TPUConfig(num_cores_per_replica=4))


def test_the_strategy_is_made_eagerly_whatever_the_script_does(chip):
    with tf2.Graph().as_default():
        where = topology_of()
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
    resolver = tf2.distribute.cluster_resolver.TPUClusterResolver("grpc://localhost:1")
    message = "Cannot reach the TPU at 'grpc://localhost:1'.*use_tpu=False.*takes no connection"
    with pytest.raises(RuntimeError, match=message):
        tpu_system.strategy(resolver)


def test_no_tpu_in_this_machine():
    """`TPUClusterResolver("local")` has an empty address; TensorFlow's own words say the rest."""
    local = tf2.distribute.cluster_resolver.TPUClusterResolver("local")
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
    listed = tf2.config.list_physical_devices

    def with_system(kind=None):
        system = tf2.config.PhysicalDevice("/physical_device:TPU_SYSTEM:0", "TPU_SYSTEM")
        return [*listed(kind), *([system] if kind in (None, "TPU_SYSTEM") else [])]

    monkeypatch.setattr(tf2.config, "list_physical_devices", with_system)
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
    monkeypatch.setattr(tf2.get_logger(), "propagate", True)
    assert tpu_system.in_environment() is None
    assert "This machine has 4 TPU chip(s), but TensorFlow" in caplog.text
    tpu_system._warn_of_unused_chips.cache_clear()


def test_tpu_strategy_on_a_tpu(chip):
    resolver = tf2.distribute.cluster_resolver.TPUClusterResolver("local")
    topology_of_chip = tpu_system.initialize(resolver)
    one = tf2.tpu.experimental.DeviceAssignment.build(
        topology_of_chip, computation_shape=[1, 1, 1, 1], num_replicas=1
    )
    made = tpu.TPUStrategy(resolver, steps_per_run=20, device_assignment=one)
    assert made.cluster_resolver is resolver
    assert (made.num_replicas_in_sync, made.steps_per_run) == (1, 20)
    assert tpu.TPUStrategy(resolver).num_replicas_in_sync == 2


def test_tpu_strategy_without_a_tpu():
    made = tpu.TPUStrategy(steps_per_run=3)
    assert made.cluster_resolver is None
    assert made.num_replicas_in_sync == len(tf2.config.list_logical_devices("CPU"))
    with made.scope():
        assert tf2.distribute.get_strategy() is made.strategy
    assert topology_of(tpu_semantics=False, train_distribute=made).strategy is made.strategy


def test_the_default_is_auto(monkeypatch):
    monkeypatch.delenv(RUNTIME_VARIABLE, raising=False)
    assert tpu.RunConfig().runtime == "auto"
    assert not isinstance(topology_of(), JaxTopology)


def test_the_environment_speaks_where_the_config_does_not(monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.setenv(RUNTIME_VARIABLE, "jax")
    assert isinstance(topology_of(), JaxTopology)
    assert not isinstance(topology_of(runtime="tensorflow"), JaxTopology)


def test_auto_is_jax_where_only_that_sees_a_tpu(monkeypatch, caplog):
    pytest.importorskip("jax")
    monkeypatch.setattr("tpu_estimator_compat.engine.jax.topology.has_tpu", lambda: True)
    tf.logging.set_verbosity(tf.logging.INFO)
    assert isinstance(topology_of(runtime="auto"), JaxTopology)
    told = f"takes JAX for train: TensorFlow {tf.VERSION} sees no TPU, and JAX sees one."
    assert told in caplog.text
    monkeypatch.setenv("TPU_NAME", "somewhere")  # TensorFlow is told of one
    with pytest.raises(RuntimeError):
        topology_of(runtime="auto")


WITHOUT_A_CHIP = """
import sys
import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.topology import chosen_topology
config = chosen_topology.join_cluster(tpu.RunConfig(), tpu_semantics=True)
chosen_topology.resolve(config, "train", tpu_semantics=True)
print([name for name in sys.modules if name.partition(".")[0] in ("jax", "jaxlib")])
"""


def test_jax_is_not_imported_to_find_no_chip():
    done = subprocess.run([sys.executable, "-c", WITHOUT_A_CHIP], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr[-2000:]


def test_it_says_so_where_it_has_no_effect(tmp_path, caplog):
    estimator = make_estimator(tmp_path, runtime="jax")
    estimator.train(train_input_fn, max_steps=1)
    assert 'RunConfig(runtime="jax") has no effect on train' in caplog.text


def test_explicit_comes_first(monkeypatch, strategy):
    monkeypatch.setenv("TPU_NAME", "grpc://10.0.0.3:8470")
    for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
        assert topology_of(mode, train_distribute=strategy(2)).num_replicas == 2


def test_without_tpu_semantics_no_tpu_is_looked_for(monkeypatch):
    monkeypatch.setenv("TPU_NAME", "grpc://10.0.0.3:8470")
    where = topology_of(tpu_semantics=False)
    assert where.num_replicas == 1
