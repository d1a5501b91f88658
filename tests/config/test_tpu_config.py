import json

import pytest

from tpu_estimator_compat.config import InputPipelineConfig, TPUConfig


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
