import json

import pytest

from tpu_estimator_compat.config import TPUConfig


@pytest.mark.parametrize("cores", [1, 2, 4, 8, 16, 32, 64, 128])
def test_powers_of_two_cores(cores):
    assert TPUConfig(num_cores_per_replica=cores).num_cores_per_replica == cores


def test_job_name_comes_from_tf_config_unless_given(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"service": {"tpu_worker_job_name": "worker"}}))
    assert TPUConfig().tpu_job_name == "worker"
    assert TPUConfig(tpu_job_name="mine").tpu_job_name == "mine"


def test_no_job_name_comes_from_a_service_of_null(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"service": null}')
    assert TPUConfig().tpu_job_name is None
