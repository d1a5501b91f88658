import pytest

from support.proofs import proves
from tpu_estimator_compat.engine.topology.local import LocalResolver


@proves("tf.contrib.distribute")
def has_strategies(module):
    assert module.MirroredStrategy(["/cpu:0", "/cpu:1"]).num_replicas_in_sync == 2
    assert module.MirroredStrategy(num_gpus=0).num_replicas_in_sync == 1
    with pytest.raises(ValueError, match="Must only specify one"):
        module.MirroredStrategy(["/cpu:0"], num_gpus=1)
    with pytest.raises(ValueError, match="cannot specify both"):
        module.MirroredStrategy(num_gpus=0, num_gpus_per_worker=0)
    assert module.ParameterServerStrategy(num_gpus_per_worker=0).num_replicas_in_sync == 1
    assert module.OneDeviceStrategy("/cpu:0").num_replicas_in_sync == 1
    assert module.get_tower_context is module.get_replica_context
    assert module.get_cross_tower_context() is None
    strategy = module.TPUStrategy(LocalResolver(), steps_per_run=5)
    assert strategy.steps_per_run == 5
    assert strategy.cluster_resolver is None
    assert module.get_cross_replica_context() is None
    outside = module.get_replica_context()
    module.require_replica_context(outside)
    with module.OneDeviceStrategy("/cpu:0").scope():
        assert module.get_cross_replica_context() is module.get_distribution_strategy()
        with pytest.raises(RuntimeError, match="Need to be inside `call_for_each_replica"):
            module.require_replica_context(outside)
