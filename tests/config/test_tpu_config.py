"""TPUConfig, the TPU RunConfig and the length of the inner loop."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.config import (
    InputPipelineConfig,
    IterationsPerLoopCounter,
    TPUConfig,
    TPURunConfig,
    check_positive_integer,
    parse_iterations_per_loop,
)


@pytest.fixture(autouse=True)
def no_tf_config(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)


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
    assert parse_iterations_per_loop(given) == IterationsPerLoopCounter(*expected)


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


def test_config_is_a_named_tuple_in_the_originals_order():
    assert TPUConfig._fields == (
        "iterations_per_loop",
        "num_shards",
        "num_cores_per_replica",
        "per_host_input_for_training",
        "tpu_job_name",
        "initial_infeed_sleep_secs",
        "input_partition_dims",
        "eval_training_input_configuration",
        "experimental_host_call_every_n_steps",
        "experimental_allow_per_host_v2_parallel_get_next",
        "experimental_feed_hook",
    )
    assert TPUConfig() == (2, None, None, 2, None, None, None, 2, 1, False, None)
    assert repr(TPUConfig()).startswith("TPUConfig(iterations_per_loop=2,")


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        (True, InputPipelineConfig.PER_HOST_V1),
        (False, InputPipelineConfig.PER_SHARD_V1),
        (InputPipelineConfig.BROADCAST, InputPipelineConfig.BROADCAST),
    ],
)
def test_bools_are_input_modes(given, mode):
    assert TPUConfig(per_host_input_for_training=given).per_host_input_for_training is mode


@pytest.mark.parametrize("cores", [1, 2, 4, 8, 16, 32, 64, 128])
def test_powers_of_two_cores(cores):
    assert TPUConfig(num_cores_per_replica=cores).num_cores_per_replica == cores


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_cores_per_replica": 3}, "num_cores_per_replica must be 1, 2, 4, .*; got 3"),
        ({"num_shards": 0}, "TPUConfig num_shards must be positive, got 0"),
        ({"eval_training_input_configuration": 4}, "must be PER_HOST_V1 or SLICED; got 4"),
        ({"input_partition_dims": [1, 2, 3]}, "with one or two elements. Got 3"),
        ({"input_partition_dims": [[1]]}, "only supported in PER_HOST_V2 mode. Got .*=True"),
        (
            {"input_partition_dims": [[1]], "per_host_input_for_training": 3},
            "requires setting num_cores_per_replica",
        ),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(ValueError, match=message):
        TPUConfig(**settings)


def test_job_name_comes_from_tf_config_unless_given(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"service": {"tpu_worker_job_name": "worker"}}))
    assert TPUConfig().tpu_job_name == "worker"
    assert TPUConfig(tpu_job_name="mine").tpu_job_name == "mine"


def resolver():
    """A cluster of one worker."""
    spec = tf.train.ClusterSpec({"worker": ["w:1"]})
    return tf.distribute.cluster_resolver.SimpleClusterResolver(spec, master="grpc://w:1")


def test_run_config_has_the_original_name():
    assert TPURunConfig.__name__ == "RunConfig"


def test_run_config_takes_the_cluster():
    cluster = resolver()
    config = TPURunConfig(cluster=cluster)
    assert config.cluster is cluster
    assert config.master == config.evaluation_master == "grpc://w:1"
    assert config.session_config.isolate_session_state
    assert config.session_config.cluster_def.job[0].name == "worker"


def test_master_and_cluster_are_refused_together():
    with pytest.raises(ValueError, match=r"Both master and cluster are set\. Got master='m'"):
        TPURunConfig(master="m", cluster=resolver())


def test_cluster_and_cluster_def_are_refused_together():
    session_config = tf.compat.v1.ConfigProto()
    session_config.cluster_def.job.add(name="worker")
    with pytest.raises(ValueError, match="You cannot provide a ClusterResolver and"):
        TPURunConfig(cluster=resolver(), session_config=session_config)


def test_evaluation_master_defaults_to_the_master():
    assert TPURunConfig(master="grpc://m").evaluation_master == "grpc://m"
    assert TPURunConfig(master="grpc://m", evaluation_master="").evaluation_master == ""


def test_replacing_the_tpu_config():
    config = TPURunConfig(TPUConfig(10), save_checkpoints_steps=4)
    new = config.replace(tpu_config=TPUConfig(20), model_dir="/m")
    assert (config.tpu_config.iterations_per_loop, new.tpu_config.iterations_per_loop) == (10, 20)
    assert (new.model_dir, new.save_checkpoints_steps) == ("/m", 4)


def test_scripts_may_set_the_tpu_config():
    config = TPURunConfig()
    config._tpu_config = config.tpu_config._replace(iterations_per_loop=9)
    assert config.tpu_config.iterations_per_loop == 9
