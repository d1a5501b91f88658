import pytest

from tpu_estimator_compat.spec import ModeKeys

from ..dealing import GLOBAL_BATCH, batches, calls_of, dealt
from ..settings import BROADCAST, EVERY, SLICED, V2, Modes


def test_sliced_splits_in_evaluation(strategy):
    found = dealt(
        strategy,
        2,
        [batches(8)],
        mode=ModeKeys.EVAL,
        per_host_input_for_training=Modes.PER_HOST_V2,
        eval_training_input_configuration=Modes.SLICED,
    )
    assert found[0] == [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]


@EVERY
@pytest.mark.parametrize("mode", [ModeKeys.EVAL, ModeKeys.PREDICT])
@pytest.mark.parametrize("in_training", [V2, BROADCAST, {}])
def test_sliced(replicas, hosts, mode, in_training):
    found = calls_of(mode, replicas, hosts, **in_training, **SLICED)
    assert found == [(0, 0, 1, replicas, GLOBAL_BATCH)]


def test_sliced_says_nothing_of_training():
    found = calls_of(ModeKeys.TRAIN, 4, 1, **V2, **SLICED)
    assert found == calls_of(ModeKeys.TRAIN, 4, 1, **V2)
