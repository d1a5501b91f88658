"""Which runtime runs a mode, and what is said of it."""

import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import on
from support.legacy_models import make_estimator, train_input_fn

import tpu_estimator_compat as tpu
from tpu_estimator_compat.environment import RUNTIME_VARIABLE
from tpu_estimator_compat.runtime import jax_installation
from tpu_estimator_compat.topology import jax_devices, resolution


def topology_of(mode="train", tpu_semantics=True, **config):
    return resolution.resolve(tpu.RunConfig(**config), mode, tpu_semantics=tpu_semantics)


def test_the_default_is_tensorflow(monkeypatch):
    monkeypatch.delenv(RUNTIME_VARIABLE, raising=False)
    assert tpu.RunConfig().runtime == "tensorflow"
    assert not isinstance(topology_of(), jax_devices.JaxTopology)


def test_the_environment_speaks_where_the_config_does_not(monkeypatch):
    monkeypatch.setenv(RUNTIME_VARIABLE, "jax")
    assert isinstance(topology_of(), jax_devices.JaxTopology)
    assert not isinstance(topology_of(runtime="tensorflow"), jax_devices.JaxTopology)


@pytest.mark.parametrize("value", ["Jax", "pytorch", 3])
def test_another_runtime_is_refused(value):
    with pytest.raises(ValueError, match=rf"one of tensorflow, jax, auto \(got {value!r}\)"):
        tpu.RunConfig(runtime=value)


def test_another_runtime_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv(RUNTIME_VARIABLE, "numpy")
    with pytest.raises(ValueError, match=f"{RUNTIME_VARIABLE}, should be one of.*'numpy'"):
        tpu.RunConfig()


def test_a_config_is_replaced_with_another_runtime():
    assert tpu.RunConfig().replace(runtime="jax").runtime == "jax"


def test_auto_is_tensorflow_without_a_tpu():
    assert not isinstance(topology_of(runtime="auto"), jax_devices.JaxTopology)


def test_auto_is_jax_where_only_that_sees_a_tpu(monkeypatch):
    monkeypatch.setattr(resolution, "has_tpu", lambda: True)
    assert isinstance(topology_of(runtime="auto"), jax_devices.JaxTopology)
    monkeypatch.setenv("TPU_NAME", "somewhere")  # TensorFlow is told of one
    with pytest.raises(RuntimeError):
        topology_of(runtime="auto")


def test_shards_are_the_first_devices():
    config = tpu.TPUConfig(num_shards=3)
    assert topology_of(runtime="jax", tpu_config=config).num_replicas == 3


def test_more_shards_than_devices_are_refused():
    config = tpu.TPUConfig(num_shards=9)
    with pytest.raises(ValueError, match=r"asks for 9 replica\(s\).*JAX has 8 device\(s\)"):
        topology_of(runtime="jax", tpu_config=config)


@pytest.mark.parametrize("field", ["train_distribute", "eval_distribute"])
def test_a_strategy_of_tensorflow_is_refused(field):
    given = {field: tf.distribute.OneDeviceStrategy("/cpu:0")}
    with pytest.raises(ValueError, match=rf"RunConfig\({field}=\.\.\.\) is a strategy of Tensor"):
        topology_of(runtime="jax", **given)


def test_it_says_so_where_it_has_no_effect(tmp_path, caplog):
    estimator = make_estimator(tmp_path, runtime="jax")
    estimator.train(train_input_fn, max_steps=1)
    assert 'RunConfig(runtime="jax") has no effect on train' in caplog.text


def test_it_says_on_which_devices(tmp_path, caplog):
    tf.logging.set_verbosity(tf.logging.INFO)
    on("jax", 2, tmp_path).train(train_input_fn, max_steps=1)
    assert "Running train with JAX on 2 cpu device(s) of 8, 1 to a replica." in caplog.text


def test_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(jax_installation, "VERSIONS", {"jax": "0.1", "jaxlib": "0.10.2"})
    with pytest.raises(ImportError, match=r"needs jax 0\.1 and jaxlib 0\.10\.2.*pip install"):
        topology_of(runtime="jax")


def test_x64_stays_off_for_others(tmp_path):
    import jax

    on("jax", 1, tmp_path).train(train_input_fn, max_steps=1)
    assert not jax.config.jax_enable_x64


WITHOUT_JAX = """
import sys
import tpu_estimator_compat as tpu
tpu.RunConfig(runtime="jax"), tpu.TPUEstimator
assert not [name for name in sys.modules if name.startswith("tpu_estimator_compat.jax_runtime")]
assert "tpu_estimator_compat.runtime.jax_mesh" not in sys.modules
"""


def test_jax_is_imported_by_those_who_use_it():
    """TensorFlow itself imports it, where it is installed."""
    subprocess.run([sys.executable, "-c", WITHOUT_JAX], check=True, capture_output=True)


def test_tensorflow_for_tpus_is_refused(monkeypatch):
    monkeypatch.setattr("tpu_estimator_compat.environment.has_xla_for_cpu", lambda: False)
    with pytest.raises(RuntimeError, match=r'runtime="jax" compiles with XLA for the CPU, which'):
        topology_of(runtime="jax")
