from types import SimpleNamespace
from typing import NamedTuple

import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import on
from support.legacy_models import train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.jax import installation
from tpu_estimator_compat.engine.topology import chosen_topology, local


def topology_of(mode="train", tpu_semantics=True, **config):
    return chosen_topology.resolve(tpu.RunConfig(**config), mode, tpu_semantics=tpu_semantics)


def test_shards_are_the_first_devices():
    config = tpu.TPUConfig(num_shards=3)
    assert topology_of(runtime="jax", tpu_config=config).num_replicas == 3


@pytest.mark.parametrize(("replicas", "cores"), [(9, 1), (2, 8)])
def test_more_shards_than_devices_are_refused(replicas, cores):
    config = tpu.TPUConfig(num_shards=replicas, num_cores_per_replica=cores)
    message = rf"{replicas} replica\(s\) of {cores} device\(s\) each, and JAX has 8 device\(s\)"
    with pytest.raises(ValueError, match=message):
        topology_of(runtime="jax", tpu_config=config)


@pytest.mark.parametrize("field", ["train_distribute", "eval_distribute"])
def test_a_strategy_of_tensorflow_is_refused(field):
    given = {field: tf.distribute.OneDeviceStrategy("/cpu:0")}
    with pytest.raises(ValueError, match=rf"RunConfig\({field}=\.\.\.\) is a strategy of Tensor"):
        topology_of(runtime="jax", **given)


def test_it_says_on_which_devices(tmp_path, caplog):
    tf.logging.set_verbosity(tf.logging.INFO)
    on("jax", 2, tmp_path).train(train_input_fn, max_steps=1)
    assert "Running train with JAX on 2 cpu device(s) of 8, 1 to a replica." in caplog.text


def test_tensorflow_for_tpus_is_refused(monkeypatch):
    monkeypatch.setattr("tpu_estimator_compat.environment.has_xla_for_cpu", lambda: False)
    with pytest.raises(RuntimeError, match=r'runtime="jax" compiles with XLA for the CPU, which'):
        topology_of(runtime="jax")


class Gpu:
    platform, process_index = "gpu", 0


@pytest.fixture
def machine_with_a_gpu(monkeypatch):
    """JAX and TensorFlow see a GPU that is not there; gives the calls that hide devices."""
    hidden = []
    monkeypatch.setattr(installation, "devices", lambda cpus, *, tpu_chips: (Gpu(),))
    monkeypatch.setattr("tensorflow.config.get_visible_devices", lambda kind: [f"{kind}:0"])
    monkeypatch.setattr("tensorflow.config.set_visible_devices", lambda *call: hidden.append(call))
    return hidden


def test_gpus_are_left_to_jax(machine_with_a_gpu, caplog):
    tf.logging.set_verbosity(tf.logging.INFO)
    assert topology_of(runtime="jax").platform == "gpu"
    assert machine_with_a_gpu == [([], "GPU")]
    assert "TensorFlow leaves 1 GPU(s) to JAX" in caplog.text


@pytest.mark.usefixtures("machine_with_a_gpu")
def test_gpus_that_tensorflow_uses_already_are_told_of(monkeypatch, caplog):
    def refuse(*call):
        raise RuntimeError("Visible devices cannot be modified after being initialized")

    monkeypatch.setattr("tensorflow.config.set_visible_devices", refuse)
    assert topology_of(runtime="jax").platform == "gpu"
    assert "holds memory of 1 GPU(s) that JAX needs as well" in caplog.text
    assert "tf.config.set_visible_devices([], 'GPU')" in caplog.text


def test_logical_cpus_are_counted_without_starting_on_one():
    assert local.count_logical_cpus() == len(tf.config.list_logical_devices("CPU"))


class Core(NamedTuple):
    """Stands in for hardware: a device of a pod."""

    process_index: int
    id: int
    platform: str = "tpu"


@pytest.fixture
def pod(monkeypatch):
    """Four processes of two devices each, of which this is the third; their order is not theirs."""

    def of(together, processes=4):
        devices = tuple(Core(i % processes, i) for i in range(2 * processes))
        group = SimpleNamespace(together=lambda call: together)
        monkeypatch.setattr(installation, "devices", lambda cpus, *, tpu_chips: devices)
        monkeypatch.setattr(installation, "process_index", lambda: 2)
        monkeypatch.setattr(
            installation, "local", lambda given: tuple(d for d in given if d.process_index == 2)
        )
        monkeypatch.setattr(
            "tpu_estimator_compat.engine.jax.processes.group.processes", lambda: group
        )

    return of


def fed(mode, cores):
    """Which replicas this process feeds, of how many, and who is fed the same."""
    config = tpu.TPUConfig(num_cores_per_replica=cores)
    found = topology_of(mode, runtime="jax", tpu_config=config)
    own = range(found.first_replica, found.first_replica + found.replicas_per_element)
    return list(own), found.num_replicas, found.readers


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        (1, ([4, 5], 8, [0, 1, 2, 3])),
        (2, ([2], 4, [0, 1, 2, 3])),
        (4, ([1], 2, [0, 0, 2, 2])),
        (8, ([0], 1, [0, 0, 0, 0])),
    ],
)
def test_replicas_of_a_pod(cores, expected, pod):
    pod(together=True)
    assert fed("train", cores) == expected
    replicas = 8 // cores
    assert fed("eval", cores) == (list(range(replicas)), replicas, [0, 0, 0, 0])


def test_a_process_evaluates_by_itself_where_others_do_not(pod):
    pod(together=False)
    assert fed("eval", 2) == ([0], 1, [0])
    with pytest.raises(ValueError, match=r"devices of 2 processes, and not all .* came to eval"):
        fed("eval", 4)


def test_replicas_across_two_processes_are_refused(pod):
    pod(together=True, processes=3)
    with pytest.raises(ValueError, match=r"have \[2, 2, 2\] devices, and 4 share a replica"):
        fed("train", 4)
