import pytest

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine import topology as topology_lib
from tpu_estimator_compat.engine.inputs import modes
from tpu_estimator_compat.engine.inputs.tpu_context import TPUContext
from tpu_estimator_compat.engine.topology import Topology


@pytest.fixture
def context(strategy):
    topology = Topology(strategy(4), True)
    return TPUContext(modes.resolve(tpu.ModeKeys.TRAIN, tpu.TPUConfig(), topology))


def test_the_device_of_a_host_is_found_by_host_or_by_replica(context):
    place = context.tpu_host_placement_function
    assert place(0) == place(host_id=0) == place(replica_id=3) == "/replica:0/task:0/device:CPU:0"
    with pytest.raises(RuntimeError, match="replica_id and host_id can have only one non-None"):
        place(host_id=0, replica_id=0)
    with pytest.raises(RuntimeError, match="can have only one"):
        place()


def test_the_device_of_a_replica(context):
    assert context.device_for_replica(3) == ("/task:0/device:CPU:0", 3)


@pytest.mark.parametrize(("cores", "replicas"), [(1, 4), (2, 2), (4, 1), (8, 1)])
def test_logical_cpus_stand_for_cores(cores, replicas):
    """Four of them make as many replicas as four cores of a TPU would."""
    tpu_config = tpu.TPUConfig(num_cores_per_replica=cores, num_shards=replicas)
    topology = topology_lib.resolve(
        tpu.RunConfig(tpu_config=tpu_config), tpu.ModeKeys.TRAIN, tpu_semantics=True
    )
    assert topology.num_replicas == replicas


def test_model_parallelism_has_an_assignment_without_a_tpu(strategy):
    """None without model parallelism, as in the original."""
    topology = Topology(strategy(4), True)
    plain = TPUContext(modes.resolve(tpu.ModeKeys.TRAIN, tpu.TPUConfig(), topology))
    assert plain.device_assignment is None
    tpu_config = tpu.TPUConfig(num_cores_per_replica=1)
    context = TPUContext(modes.resolve(tpu.ModeKeys.TRAIN, tpu_config, topology))
    assert context.device_assignment.num_replicas == 4
    assert context.device_assignment.tpu_device(3) == "/task:0/device:TPU:3"
