import pytest

from tpu_estimator_compat.engine.inputs import modes
from tpu_estimator_compat.spec import ModeKeys

from ..dealing import resolved
from ..settings import BROADCAST, SLICED


def test_off_tpu_every_host_calls_and_batch_sizes_are_whole():
    plain = resolved(ModeKeys.TRAIN, 7, 4, 2, tpu_semantics=False, **BROADCAST)
    assert plain.invocations() == [modes.Invocation(0, 0), modes.Invocation(1, 1)]
    assert (plain.input_batch_size, plain.model_batch_size) == (7, 7)
    assert not plain.same_for_all
    plain.check()


def test_sliced_is_for_tpu():
    with pytest.raises(ValueError, match="SLICED mode only works on use_tpu = True"):
        resolved(ModeKeys.EVAL, 8, 1, tpu_semantics=False, **SLICED).check()
    resolved(ModeKeys.TRAIN, 8, 1, tpu_semantics=False, **SLICED).check()
