import pytest

from tpu_estimator_compat.spec import ModeKeys

from ..dealing import GLOBAL_BATCH, batches, calls_of, dealt
from ..settings import EVERY, Modes


def test_per_shard_v1_gives_every_replica_its_own_dataset(strategy):
    datasets = [batches(4, 8), batches(4, 8).map(lambda x: x + 100)]
    found = dealt(strategy, 2, datasets, per_host_input_for_training=Modes.PER_SHARD_V1)
    assert found == [
        [[[0, 1, 2, 3]], [[100, 101, 102, 103]]],
        [[[4, 5, 6, 7]], [[104, 105, 106, 107]]],
    ]


@EVERY
@pytest.mark.parametrize("alias", [Modes.PER_SHARD_V1, False])
def test_per_shard_v1(replicas, hosts, alias):
    share = replicas // hosts
    assert calls_of(ModeKeys.TRAIN, replicas, hosts, per_host_input_for_training=alias) == [
        (core // share, core, replicas, 1, GLOBAL_BATCH // replicas) for core in range(replicas)
    ]
