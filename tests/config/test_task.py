"""TF_CONFIG: which task of which cluster this is."""

import pytest

from tpu_estimator_compat.config import RunConfig


@pytest.mark.parametrize(("index", "chief"), [(0, True), (1, False)])
def test_strategy_reads_a_cluster_of_workers_alone(tf_config, strategy, index, chief):
    replicas = strategy(2)
    tf_config("worker", index, {"worker": ["w:1", "w:2"]})
    config = RunConfig(train_distribute=replicas)
    assert config.train_distribute is replicas
    assert (config.task_id, config.is_chief) == (index, chief)
    assert (config.num_worker_replicas, config.global_id_in_cluster) == (2, index)
    assert config.session_config is None
