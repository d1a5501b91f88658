import copy

import pytest
import tensorflow as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat.config import RunConfig, TPURunConfig
from tpu_estimator_compat.environment import RUNTIME_VARIABLE

v1 = tf.compat.v1


BOTH = pytest.mark.parametrize("run_config", [RunConfig, TPURunConfig], ids=["plain", "tpu"])


@BOTH
def test_replace_leaves_the_first_config_alone(run_config):
    config = run_config(model_dir="/a", session_config=v1.ConfigProto())
    new = config.replace(model_dir="/b")
    new.session_config.log_device_placement = True
    assert (config.model_dir, new.model_dir) == ("/a", "/b")
    assert not config.session_config.log_device_placement
    assert type(new) is run_config


@BOTH
def test_attributes_set_by_scripts_are_seen(run_config):
    config = run_config()
    config._model_dir = "/poked"
    config._save_checkpoints_steps = 3
    assert (config.model_dir, config.save_checkpoints_steps) == ("/poked", 3)
    assert copy.deepcopy(config).model_dir == "/poked"


@BOTH
def test_two_configs_are_equal_only_if_the_same(run_config):
    config = run_config()
    assert config == config
    assert config != run_config()


class Distribute:
    """What `tf.contrib.distribute.DistributeConfig` was."""

    def __init__(self, train=None, evaluate=None, remote=None):
        self.train_distribute, self.eval_distribute = train, evaluate
        self.remote_cluster = remote


def test_experimental_distribute_gives_the_strategies(strategy):
    train, evaluate = strategy(2), strategy(1)
    config = RunConfig(experimental_distribute=Distribute(train, evaluate))
    assert config.train_distribute is train
    assert config.eval_distribute is evaluate


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
