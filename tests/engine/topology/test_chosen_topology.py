import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine import topology
from tpu_estimator_compat.engine.jax.topology import JaxTopology
from tpu_estimator_compat.engine.topology import chosen_topology, jax_devices
from tpu_estimator_compat.environment import RUNTIME_VARIABLE
from tpu_estimator_compat.spec import ModeKeys


def topology_of(mode="train", tpu_semantics=True, **config):
    return chosen_topology.resolve(tpu.RunConfig(**config), mode, tpu_semantics=tpu_semantics)


def test_the_default_is_auto(monkeypatch):
    monkeypatch.delenv(RUNTIME_VARIABLE, raising=False)
    assert tpu.RunConfig().runtime == "auto"
    assert not isinstance(topology_of(), JaxTopology)


def test_the_environment_speaks_where_the_config_does_not(monkeypatch):
    monkeypatch.setenv(RUNTIME_VARIABLE, "jax")
    assert isinstance(topology_of(), JaxTopology)
    assert not isinstance(topology_of(runtime="tensorflow"), JaxTopology)


def test_auto_is_tensorflow_without_a_tpu():
    assert not isinstance(topology_of(runtime="auto"), JaxTopology)


def test_auto_is_jax_where_only_that_sees_a_tpu(monkeypatch, caplog):
    monkeypatch.setattr(jax_devices, "has_tpu", lambda: True)
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
from tpu_estimator_compat.engine import topology
config = topology.join_cluster(tpu.RunConfig(), tpu_semantics=True)
topology.resolve(config, "train", tpu_semantics=True)
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
    config = tpu.RunConfig(train_distribute=strategy(2))
    for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
        assert topology.resolve(config, mode, tpu_semantics=True).num_replicas == 2


def test_without_tpu_semantics_no_tpu_is_looked_for(monkeypatch):
    monkeypatch.setenv("TPU_NAME", "grpc://10.0.0.3:8470")
    where = topology.resolve(tpu.RunConfig(), ModeKeys.TRAIN, tpu_semantics=False)
    assert where.num_replicas == 1
