"""The device part of a step on one replica, in the form that compilers take."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tpu_estimator_compat.engine.capture.capture import element_names
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import key
from tpu_estimator_compat.engine.jax.lowering import replacements, xla_collectives
from tpu_estimator_compat.engine.step import cut as step_cut
from tpu_estimator_compat.engine.step import replicated_ops
from tpu_estimator_compat.engine.step.cut import Part
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram


@dataclasses.dataclass(frozen=True)
class ReplicaStep:
    """The step of one replica: `program` is the device part of `plan`, exchanges left to XLA."""

    plan: StepPlan
    program: ReplicaProgram

    @property
    def feeds(self) -> list[tf.Tensor]:
        """Placeholders of a replica's input, and of its tensors from the host stage."""
        return self.program.feeds

    @property
    def feed_names(self) -> list[str]:
        """The users' names for the inputs."""
        names = element_names(self.plan.element_spec)
        known = dict(zip(map(key, self.plan.feeds), names, strict=True))
        return [known.get(key(t), t.op.name) for t in self.feeds]

    @property
    def ops(self) -> list[tf.Operation]:
        """The operations of the step, without those of nested functions."""
        return graph_ops.in_creation_order(self.program.ops)

    @property
    def variables(self) -> list[tf.Operation]:
        return [op for op in self.program.handles if graph_ops.is_variable_handle(op)]

    @property
    def resources(self) -> list[tf.Operation]:
        """Handles of other resources, such as lookup tables."""
        return [op for op in self.program.handles if not graph_ops.is_variable_handle(op)]


def replica_step(plan: StepPlan, replicas: int, part: Part | None = None) -> ReplicaStep:
    """The device part of a step, or `part` of it.

    As on a TPU, every tensor of `host_call` and `eval_metrics` leaves the device, whether or not
    the host uses it.
    """
    if part is None:
        parts = step_cut.cut(plan)
        sent = [t for _, t in plan.host_placeholders.values() if not plan.is_of_stage(t)]
        part = step_cut.device_part(plan, (), [*parts.own, *sent], parts.device.targets)
    collectives = xla_collectives.rewrites(plan.graph, replicas)
    program = ReplicaProgram(
        plan.graph,
        part.feeds,
        part.fetches,
        part.targets,
        replicas=replicas,
        rewrites={**collectives, **replacements.rewrites(plan.graph)},
        reads_first=True,
    )
    replicated_ops.owned(program.ops, replicas, compiled=True)
    return ReplicaStep(plan, program)
