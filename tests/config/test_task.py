"""TF_CONFIG: which task of which cluster this is."""

import pytest

from tpu_estimator_compat.config import RunConfig


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


def test_broken_tf_config_is_a_value_error(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{cluster")
    with pytest.raises(ValueError):
        RunConfig()
