import pytest

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.inputs import modes
from tpu_estimator_compat.spec import ModeKeys

from ..dealing import GLOBAL_BATCH, calls_of
from ..settings import Modes


@pytest.mark.parametrize("mode", [Modes.PER_SHARD_V1, Modes.PER_HOST_V1, None])
def test_per_shard_becomes_per_host_outside_training(mode):
    found = calls_of(ModeKeys.EVAL, 4, 1, per_host_input_for_training=mode)
    assert found == [(0, 0, 1, 4, GLOBAL_BATCH)]


def test_model_parallelism_goes_with_input_per_host():
    config = tpu.TPUConfig(num_cores_per_replica=2, per_host_input_for_training=Modes.PER_SHARD_V1)
    with pytest.raises(ValueError, match="Model parallelism only supports per host input"):
        modes.check_config(config)
    modes.check_config(config._replace(num_cores_per_replica=None))
    modes.check_config(config._replace(per_host_input_for_training=Modes.PER_HOST_V1))
