"""The step of a mode as the replicas of a TPU would run it, captured without the TPU."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tpu_estimator_compat.lowering.replica_step import ReplicaStep, replica_step
from tpu_estimator_compat.modes.captured_mode import CapturedMode
from tpu_estimator_compat.modes.plans import model_step
from tpu_estimator_compat.preflight.topologies import TpuTopology
from tpu_estimator_compat.topology import Topology


@dataclasses.dataclass(frozen=True)
class PlannedTopology(Topology):
    """Replicas that are not there.

    Attributes:
      replicas: how many.
    """

    replicas: int = 1

    @classmethod
    def of(cls, tpu: TpuTopology, replicas: int) -> PlannedTopology:
        """`replicas` on the hosts of `tpu`; one of these stands for all, whose input is alike."""
        return cls(tf.distribute.get_strategy(), True, tpu.hosts, 0, replicas)

    @property
    def num_replicas(self) -> int:
        """Number of replicas on all hosts."""
        return self.replicas


@dataclasses.dataclass(frozen=True)
class PlannedStep(ReplicaStep):
    """What one replica runs in a step of a captured mode.

    Attributes:
      run: the captured mode.
    """

    run: CapturedMode


def plan_step(run: CapturedMode) -> PlannedStep:
    """The replicas' share of a captured mode.

    Raises:
      RuntimeError: a scalar is wanted of all replicas.
    """
    with run.in_graph():
        plan = model_step(run).plan
    return PlannedStep(plan, replica_step(plan, run.topology.num_replicas).program, run)
