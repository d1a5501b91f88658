"""The plain RunConfig: what is ours, and what must hold without the original at hand."""

import copy
import json
import pathlib

import pytest
import tensorflow as tf

from tpu_estimator_compat.config import RunConfig, TaskType, TPURunConfig, default_session_config

v1 = tf.compat.v1

CLUSTER = {"chief": ["c:1"], "ps": ["p:1", "p:2"], "worker": ["w:1", "w:2", "w:3"]}
BOTH = pytest.mark.parametrize("run_config", [RunConfig, TPURunConfig], ids=["plain", "tpu"])


@pytest.fixture(autouse=True)
def no_tf_config(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)


@pytest.fixture
def tf_config(monkeypatch):
    """`tf_config(kind, index, cluster)` sets TF_CONFIG."""

    def set_to(kind, index, cluster=CLUSTER):
        value = {"cluster": cluster, "task": {"type": kind, "index": index}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(value))

    return set_to


def jit_session_config(level):
    """A ConfigProto with this `global_jit_level`."""
    config = v1.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    return config


@BOTH
def test_defaults_are_the_originals(run_config):
    config = run_config()
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (None, 600)
    assert (config.save_summary_steps, config.log_step_count_steps) == (100, 100)
    assert (config.keep_checkpoint_max, config.keep_checkpoint_every_n_hours) == (5, 10000)
    assert config.checkpoint_save_graph_def is True
    assert config.model_dir is None
    assert config.is_chief
    assert config.task_type == TaskType.WORKER


@BOTH
def test_naming_one_checkpoint_interval_switches_the_other_off(run_config):
    config = run_config(save_checkpoints_steps=5)
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (5, None)
    config = config.replace(save_checkpoints_secs=9)
    assert (config.save_checkpoints_steps, config.save_checkpoints_secs) == (None, 9)


@BOTH
def test_two_checkpoint_intervals_are_refused(run_config):
    with pytest.raises(ValueError, match=r"cannot be both set\. Got 5 and 6"):
        run_config(save_checkpoints_steps=5, save_checkpoints_secs=6)


@BOTH
def test_replace_leaves_the_first_config_alone(run_config):
    config = run_config(model_dir="/a", session_config=v1.ConfigProto())
    new = config.replace(model_dir="/b")
    new.session_config.log_device_placement = True
    assert (config.model_dir, new.model_dir) == ("/a", "/b")
    assert not config.session_config.log_device_placement
    assert type(new) is run_config


@BOTH
def test_replace_refuses_what_is_no_setting(run_config):
    with pytest.raises(ValueError, match="Replacing is_chief is not supported"):
        run_config().replace(is_chief=False)


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


def test_path_model_dir_becomes_text():
    assert RunConfig(pathlib.Path("/models/a")).model_dir == "/models/a"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"save_summary_steps": -1}, r"save_summary_steps should be >= 0 \(got -1\)"),
        ({"keep_checkpoint_max": -2}, r"keep_checkpoint_max should be >= 0 \(got -2\)"),
        ({"tf_random_seed": "7"}, r"tf_random_seed must be integer\. \(got '7'\)"),
        ({"protocol": "http"}, r"protocol should be grpc or grpc\+verbs \(got 'http'\)"),
        ({"jit_compile": "yes"}, r"jit_compile should be True, False or None \(got 'yes'\)"),
    ],
)
def test_refusals_show_the_value(setting, message):
    with pytest.raises(ValueError, match=message):
        RunConfig(**setting)


@BOTH
@pytest.mark.parametrize(("level", "expected"), [(-1, False), (0, False), (1, True), (2, True)])
def test_jit_follows_the_session_config(run_config, level, expected):
    assert run_config(session_config=jit_session_config(level)).jit_compile is expected


@BOTH
def test_jit_given_beats_the_session_config(run_config):
    config = run_config(session_config=jit_session_config(1), jit_compile=False)
    assert config.jit_compile is False
    assert config.replace(jit_compile=None).jit_compile is True
    assert run_config().jit_compile is False


def test_jit_is_given_by_name_only():
    with pytest.raises(TypeError):
        RunConfig(*[None] * 17, True)


def test_worker_in_a_cluster(tf_config):
    tf_config("worker", 1)
    config = RunConfig()
    assert (config.task_type, config.task_id, config.is_chief) == ("worker", 1, False)
    assert config.master == "grpc://w:2"
    assert (config.num_worker_replicas, config.num_ps_replicas) == (4, 2)
    assert config.global_id_in_cluster == 2
    assert list(config.session_config.device_filters) == ["/job:ps", "/job:worker/task:1"]


def test_evaluator_is_outside_the_cluster(tf_config):
    tf_config("evaluator", 3)
    config = RunConfig()
    assert (config.task_type, config.task_id) == ("evaluator", 3)
    assert not config.is_chief
    assert not config.cluster_spec
    assert config.global_id_in_cluster is None
    assert config.session_config is None


def test_tpu_config_has_no_device_filters(tf_config):
    tf_config("worker", 1)
    assert TPURunConfig().session_config is None


@pytest.mark.parametrize(("index", "chief"), [(0, True), (1, False)])
def test_strategy_reads_a_cluster_of_workers_alone(tf_config, strategy, index, chief):
    replicas = strategy(2)
    tf_config("worker", index, {"worker": ["w:1", "w:2"]})
    config = RunConfig(train_distribute=replicas)
    assert config.train_distribute is replicas
    assert (config.task_id, config.is_chief) == (index, chief)
    assert (config.num_worker_replicas, config.global_id_in_cluster) == (2, index)
    assert config.session_config is None


def test_workers_alone_are_refused_without_a_strategy(tf_config):
    tf_config("worker", 0, {"worker": ["w:1", "w:2"]})
    with pytest.raises(ValueError, match=r"must have one \"chief\" node\. Got the jobs"):
        RunConfig()


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


def test_strategy_given_twice_is_refused(strategy):
    one = strategy(1)
    with pytest.raises(ValueError, match=r"`experimental_distribute\.train_distribute` can be set"):
        RunConfig(train_distribute=one, experimental_distribute=Distribute(one))


def test_remote_cluster_is_refused(strategy):
    with pytest.raises(ValueError, match="remote_cluster` is not supported"):
        RunConfig(experimental_distribute=Distribute(strategy(1), remote={"worker": ["w:1"]}))


@pytest.mark.parametrize("argument", ["train_distribute", "eval_distribute"])
def test_parameter_server_strategy_is_refused(argument):
    servers = object.__new__(tf.distribute.experimental.ParameterServerStrategy)
    with pytest.raises(ValueError, match="ClusterCoordinator"):
        RunConfig(**{argument: servers})


def test_parameter_server_strategy_is_refused_in_experimental_distribute():
    servers = object.__new__(tf.distribute.experimental.ParameterServerStrategy)
    with pytest.raises(ValueError, match="ClusterCoordinator"):
        RunConfig(experimental_distribute=Distribute(servers))


def test_model_dir_must_agree_with_tf_config(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"model_dir": "/a"}))
    assert RunConfig().model_dir == "/a"
    with pytest.raises(ValueError, match="must have the same value as the model_dir in TF_CONFIG"):
        RunConfig(model_dir="/b")


def test_broken_tf_config_is_a_value_error(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{cluster")
    with pytest.raises(ValueError):
        RunConfig()


def test_default_session_config_allows_soft_placement():
    config = default_session_config()
    assert config.allow_soft_placement
    assert config.graph_options.rewrite_options.meta_optimizer_iterations == 1
