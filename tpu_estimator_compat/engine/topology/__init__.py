"""The topology of a mode: its strategy, its replicas and hosts."""

from tpu_estimator_compat.engine.topology.chosen_topology import (
    check_steps,
    join_cluster,
    resolve,
    takes_session,
)
from tpu_estimator_compat.engine.topology.local import LocalResolver
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.engine.topology.tpu_strategy import TPUStrategy
from tpu_estimator_compat.engine.topology.tpu_system import in_environment

__all__ = [
    "LocalResolver",
    "TPUStrategy",
    "Topology",
    "check_steps",
    "in_environment",
    "join_cluster",
    "resolve",
    "takes_session",
]
