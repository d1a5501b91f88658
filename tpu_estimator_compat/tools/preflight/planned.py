"""The step of a mode as the replicas of absent devices would run it."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tpu_estimator_compat.engine.jax.device_part import JaxDevicePart
from tpu_estimator_compat.engine.jax.lowering.replica_step import ReplicaStep, replica_step
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.modes.plans import evaluation_plan, prediction_plan, training_plan
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.topology import Topology
from tpu_estimator_compat.environment import JAX
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.preflight.targets.target import Target


@dataclasses.dataclass(frozen=True)
class PlannedTopology(Topology):
    """A topology of absent devices; `needs_jax` where only the JAX runtime compiles for them."""

    replicas: int = 1
    needs_jax: bool = False

    @classmethod
    def of(cls, target: Target, replicas: int) -> PlannedTopology:
        """A topology of `replicas` replicas on the hosts of `target`, seen from the first host."""
        strategy = tf.distribute.get_strategy()
        return cls(strategy, True, target.hosts, 0, replicas, target.needs_jax)

    @property
    def compiles_steps(self) -> bool:
        """XLA compiles the device part of all steps."""
        return True

    @property
    def num_replicas(self) -> int:
        return self.replicas


@dataclasses.dataclass(frozen=True)
class PlannedStep(ReplicaStep):
    """The step of one replica of a captured mode; the JAX runtime compiles `on_jax`."""

    captured: CapturedMode
    on_jax: JaxDevicePart


def plan_step(captured: CapturedMode, needs_jax: bool) -> PlannedStep:
    """The device part of a captured mode, as the configured runtime divides the step.

    With TensorFlow's runtime, a TPU computes every tensor that goes to the host. With JAX's, the
    host computes the tensors that a TPU cannot compute, so preflight has no finding for them.
    """
    with captured.in_graph():
        plan = _plan(captured)
    replicas = captured.topology.num_replicas
    on_jax = JaxDevicePart(plan, replicas)
    runs_on_jax = captured.config.runtime == JAX or needs_jax
    step = on_jax.step if runs_on_jax else replica_step(plan, replicas)
    return PlannedStep(plan, step.program, captured, on_jax)


def _plan(captured: CapturedMode) -> StepPlan:
    if captured.mode == ModeKeys.TRAIN:
        return training_plan(captured)
    if captured.mode == ModeKeys.EVAL:
        return evaluation_plan(captured)[0]
    return prediction_plan(captured, captured.spec.predictions)[0]
