import copy

import numpy as np
import pytest
import tensorflow as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat.config import (
    IterationsPerLoopCounter,
    RunConfig,
    TPUConfig,
    TPURunConfig,
    check_positive_integer,
    session_config,
)
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
    with pytest.raises(
        ValueError, match=rf"one of tensorflow, jax, session, auto \(got {value!r}\)"
    ):
        tpu.RunConfig(runtime=value)


def test_another_runtime_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv(RUNTIME_VARIABLE, "numpy")
    with pytest.raises(ValueError, match=f"{RUNTIME_VARIABLE}, should be one of.*'numpy'"):
        tpu.RunConfig()


def test_a_config_is_replaced_with_another_runtime():
    assert tpu.RunConfig().replace(runtime="jax").runtime == "jax"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1, (1, "count")),
        ("250", (250, "count")),
        (np.int64(8), (8, "count")),
        ("30s", (30, "seconds")),
        ("2m", (120, "seconds")),
        ("3h", (10800, "seconds")),
    ],
)
def test_iterations_are_steps_or_seconds(given, expected):
    config = TPUConfig(iterations_per_loop=given)
    assert config.loop_length == IterationsPerLoopCounter(*expected)
    assert config.iterations_per_loop is given


@pytest.mark.parametrize("given", [0, -1, "0s", "05", "1d", "s", "", "5|", "5\n", 1.5, True, None])
def test_other_iterations_are_refused(given):
    with pytest.raises(ValueError, match="Invalid TPUConfig `iterations_per_loop` value"):
        TPUConfig(iterations_per_loop=given)


def test_positive_integers_pass_and_others_do_not():
    check_positive_integer(np.int32(1), "n")
    with pytest.raises(TypeError, match=r"n must be int, got <class 'float'>: 1\.0"):
        check_positive_integer(1.0, "n")
    with pytest.raises(ValueError, match="n must be positive, got 0"):
        check_positive_integer(0, "n")


@pytest.mark.parametrize(("index", "chief"), [(0, True), (1, False)])
def test_strategy_reads_a_cluster_of_workers_alone(tf_config, strategy, index, chief):
    replicas = strategy(2)
    tf_config("worker", index, {"worker": ["w:1", "w:2"]})
    config = RunConfig(train_distribute=replicas)
    assert config.train_distribute is replicas
    assert (config.task_id, config.is_chief) == (index, chief)
    assert (config.num_worker_replicas, config.global_id_in_cluster) == (2, index)
    assert config.session_config is None


def test_run_config_has_the_original_name():
    assert TPURunConfig.__name__ == "RunConfig"


def test_scripts_may_set_the_tpu_config():
    config = TPURunConfig()
    config._tpu_config = config.tpu_config._replace(iterations_per_loop=9)
    assert config.tpu_config.iterations_per_loop == 9


def jit_session_config(level):
    config = v1.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    return config


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


def test_strategy_given_twice_is_refused(strategy):
    one = strategy(1)
    with pytest.raises(ValueError, match=r"`experimental_distribute\.train_distribute` can be set"):
        RunConfig(train_distribute=one, experimental_distribute=Distribute(one))


def test_remote_cluster_is_refused(strategy):
    with pytest.raises(ValueError, match="remote_cluster` is not supported"):
        RunConfig(experimental_distribute=Distribute(strategy(1), remote={"worker": ["w:1"]}))


@pytest.mark.parametrize(
    ("argument", "of"),
    [
        ("train_distribute", lambda servers: servers),
        ("eval_distribute", lambda servers: servers),
        ("experimental_distribute", Distribute),
    ],
)
def test_parameter_server_strategy_is_refused(argument, of):
    servers = object.__new__(tf.distribute.experimental.ParameterServerStrategy)
    with pytest.raises(ValueError, match="ClusterCoordinator"):
        RunConfig(**{argument: of(servers)})


def test_parameter_servers_of_tf1_have_one_replica_per_worker(monkeypatch):
    servers = v1.distribute.experimental.ParameterServerStrategy()
    assert RunConfig(train_distribute=servers).train_distribute is servers
    monkeypatch.setattr(type(servers), "num_replicas_in_sync", 2)
    with pytest.raises(NotImplementedError, match="2 replicas, one per GPU of this worker"):
        RunConfig(train_distribute=servers)


def test_fields_of_a_session_config_without_effect_are_told_once(monkeypatch, caplog):
    monkeypatch.setattr(session_config, "_warned", set())
    config = v1.ConfigProto(
        allow_soft_placement=True,
        operation_timeout_in_ms=1000,
        intra_op_parallelism_threads=1,
        gpu_options=v1.GPUOptions(allow_growth=True),
        device_count={"GPU": 0},
    )
    config.graph_options.rewrite_options.constant_folding = 2
    for _ in range(2):
        session_config.warn_of_idle_fields(config)
    session_config.warn_of_idle_fields(v1.RunOptions(timeout_in_ms=1, inter_op_thread_pool=-1))
    told = [record.args for record in caplog.records]
    assert [name for name, *_ in told] == [
        "intra_op_parallelism_threads",
        "graph_options.rewrite_options.constant_folding",
        "timeout_in_ms",
        "inter_op_thread_pool",
    ]
    assert "tf.config.threading.set_intra_op_parallelism_threads" in told[0][2]
    assert "tf.config.optimizer.set_experimental_options" in told[1][2]


def test_fields_of_gpus_where_there_is_one(monkeypatch, caplog):
    monkeypatch.setattr(session_config, "_warned", set())
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
    options = v1.GPUOptions(allow_growth=True, visible_device_list="0")
    config = v1.ConfigProto(gpu_options=options, device_count={"GPU": 0})
    session_config.warn_of_idle_fields(config)
    assert [record.args[0] for record in caplog.records] == [
        "device_count",
        "gpu_options.allow_growth",
        "gpu_options.visible_device_list",
    ]


def test_the_default_session_configs_are_no_cause_to_warn(monkeypatch, caplog):
    monkeypatch.setattr(session_config, "_warned", set())
    session_config.warn_of_idle_fields(session_config.default_session_config())
    session_config.warn_of_idle_fields(session_config.distributed_session_config("worker", 1))
    of_tpu = v1.ConfigProto(allow_soft_placement=True, isolate_session_state=True)
    session_config.warn_of_idle_fields(of_tpu)
    assert not caplog.records
