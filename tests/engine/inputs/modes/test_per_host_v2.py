import pytest

from tpu_estimator_compat.spec import ModeKeys

from ..dealing import GLOBAL_BATCH, batches, calls_of, dealt
from ..settings import EVERY, V2, Modes


def test_per_host_v2_deals_batches_in_turn(strategy):
    found = dealt(strategy, 2, [batches(4)], per_host_input_for_training=Modes.PER_HOST_V2)
    assert found[0] == [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]
    assert found[1] == [[[8, 9, 10, 11]], [[12, 13, 14, 15]]]


@pytest.mark.parametrize("replicas", [2, 4])
def test_a_last_group_that_is_not_whole_is_dropped(strategy, replicas):
    found = dealt(
        strategy, replicas, [batches(2, 10)], per_host_input_for_training=Modes.PER_HOST_V2
    )
    assert len(found) == 5 // replicas


@EVERY
@pytest.mark.parametrize("mode", [ModeKeys.TRAIN, ModeKeys.EVAL])
def test_per_host_v2(replicas, hosts, mode):
    assert calls_of(mode, replicas, hosts, **V2) == [
        (host, host, hosts, replicas // hosts, GLOBAL_BATCH // replicas) for host in range(hosts)
    ]
