"""The step of a mode as the replicas of a TPU would run it, captured without the TPU."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tpu_estimator_compat.modes.captured_mode import CapturedMode
from tpu_estimator_compat.modes.plans import model_step
from tpu_estimator_compat.preflight import tpu_ops
from tpu_estimator_compat.preflight.topologies import TpuTopology
from tpu_estimator_compat.program import graph_ops
from tpu_estimator_compat.program.element_names import element_names
from tpu_estimator_compat.program.graph_ops import key
from tpu_estimator_compat.program.lookup_program import needed_feeds
from tpu_estimator_compat.program.replica_program import ReplicaProgram
from tpu_estimator_compat.program.step_plan import StepPlan
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
class PlannedStep:
    """What one replica runs in a step.

    Attributes:
      run: the captured mode.
      plan: what a step of it computes.
      program: the replica's share of its step, exchanges left to XLA.
    """

    run: CapturedMode
    plan: StepPlan
    program: ReplicaProgram

    @property
    def feeds(self) -> list[tf.Tensor]:
        """Placeholders of one replica's input, and of what the host looks up for it."""
        return self.program.feeds

    @property
    def feed_names(self) -> list[str]:
        """What to call them where users read of them."""
        captured = self.run.captured
        names = dict(
            zip(map(key, captured.feeds), element_names(captured.element_spec), strict=True)
        )
        return [names.get(key(t), t.op.name) for t in self.feeds]

    @property
    def ops(self) -> list[tf.Operation]:
        """The operations of the step, those of nested functions left out."""
        return graph_ops.in_creation_order(self.program.ops)

    @property
    def variables(self) -> list[tf.Operation]:
        """Handles of the variables that the step uses."""
        return [op for op in self.program.handles if graph_ops.is_variable_handle(op)]

    @property
    def resources(self) -> list[tf.Operation]:
        """Handles of other resources, such as lookup tables."""
        return [op for op in self.program.handles if not graph_ops.is_variable_handle(op)]


def plan_step(run: CapturedMode) -> PlannedStep:
    """The replicas' share of a captured mode.

    As on a TPU, every tensor of `host_call` and `eval_metrics` leaves the device, whether or not
    the host looks at it.

    Raises:
      RuntimeError: a scalar is wanted of all replicas.
    """
    with run.in_graph():
        plan = model_step(run).plan
    own = [t for t in plan.fetches if not plan.is_host(t.op)]
    looked_up = {key(t) for t in plan.lookups.results}
    sent = [t for _, t in plan.host_placeholders.values() if key(t) not in looked_up]
    fetches = list({key(t): t for t in [*own, *sent]}.values())
    targets = [op for op in plan.targets if not plan.is_host(op)]
    program = ReplicaProgram(
        plan.graph,
        needed_feeds(plan, fetches, targets),
        fetches,
        targets,
        replicas=run.topology.num_replicas,
        native_collectives=True,
        rewrites=tpu_ops.rewrites(plan.graph),
    )
    return PlannedStep(run, plan, program)
