import pytest

from tpu_estimator_compat.spec import ModeKeys

from ..dealing import GLOBAL_BATCH, batches, calls_of, dealt
from ..settings import BROADCAST, EVERY, Modes


def test_broadcast_gives_everyone_everything(strategy):
    found = dealt(strategy, 4, [batches(8)], per_host_input_for_training=Modes.BROADCAST)
    assert found == [[[list(range(8))]] * 4, [[list(range(8, 16))]] * 4]


@EVERY
@pytest.mark.parametrize("mode", [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT])
def test_broadcast(replicas, hosts, mode):
    assert calls_of(mode, replicas, hosts, **BROADCAST) == [(0, 0, 1, replicas, GLOBAL_BATCH)]
