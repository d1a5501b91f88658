"""Where a mode runs: which strategy, how many replicas and hosts, which batch size for whom."""

from tpu_estimator_compat.topology.batch_sizes import BatchSizes
from tpu_estimator_compat.topology.input_modes import (
    Invocation,
    invocations,
    is_broadcast,
    is_per_core,
    is_per_host_v2,
    is_sliced,
)
from tpu_estimator_compat.topology.local_resolver import LocalResolver
from tpu_estimator_compat.topology.replicas import Topology
from tpu_estimator_compat.topology.resolution import join_cluster, resolve
from tpu_estimator_compat.topology.tpu_strategy import TPUStrategy
from tpu_estimator_compat.topology.tpu_system import in_environment

__all__ = [
    "BatchSizes",
    "Invocation",
    "LocalResolver",
    "TPUStrategy",
    "Topology",
    "in_environment",
    "invocations",
    "is_broadcast",
    "is_per_core",
    "is_per_host_v2",
    "is_sliced",
    "join_cluster",
    "resolve",
]
