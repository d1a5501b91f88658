import pytest

from tpu_estimator_compat.spec import ModeKeys

from ..dealing import GLOBAL_BATCH, batches, calls_of, dealt
from ..settings import EVERY, Modes


def test_per_host_v1_splits_the_host_batch(strategy):
    assert dealt(strategy, 2, [batches(8)]) == [
        [[[0, 1, 2, 3]], [[4, 5, 6, 7]]],
        [[[8, 9, 10, 11]], [[12, 13, 14, 15]]],
    ]


@EVERY
@pytest.mark.parametrize("alias", [Modes.PER_HOST_V1, True])
def test_per_host_v1(replicas, hosts, alias):
    assert calls_of(ModeKeys.TRAIN, replicas, hosts, per_host_input_for_training=alias) == [
        (host, host, hosts, replicas // hosts, GLOBAL_BATCH // hosts) for host in range(hosts)
    ]
