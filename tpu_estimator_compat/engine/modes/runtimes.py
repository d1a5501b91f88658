"""The runtime of a topology: makes the variable store and the runner of a plan's steps."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, cast

from tpu_estimator_compat.engine.runtime.tuning import DEFAULTS, Tuning
from tpu_estimator_compat.engine.session.replica_runner import ReplicaRunner
from tpu_estimator_compat.engine.session.runner import Runner
from tpu_estimator_compat.engine.session.workers_runner import WorkersRunner
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.random_streams import RandomStreams
from tpu_estimator_compat.engine.topology import Topology
from tpu_estimator_compat.environment import JAX

if TYPE_CHECKING:
    from tpu_estimator_compat.engine.jax.topology import JaxTopology


@dataclasses.dataclass(frozen=True)
class RunnerOptions:
    """A caller's options of a runner.

    Attributes:
      interrupted: polled in long runs: whether to end them early.
      next_element: takes the next element from the iterator, where TensorFlow builds a step.
      notes_before: whether to note the global step before the last step of a run.
      for_keras: whether Keras calls the runner: elements of all replicas are concatenated, and
        machines do not agree on steps.
      seed: of random numbers; None for different numbers in each training.
      streams: of random ops, which the runner continues; None for new streams.
    """

    interrupted: Callable[[], bool] = lambda: False
    next_element: Callable[[Iterator], Any] = next
    notes_before: bool = False
    for_keras: bool = False
    trains: bool = False
    seed: int | None = None
    model_dir: str | None = None
    tuning: Tuning = DEFAULTS
    streams: RandomStreams | None = None


class Runtime(Protocol):
    """Makes stores and runners for one topology."""

    def new_store(self) -> VariableStore: ...

    def runner(self, plan: StepPlan, store: VariableStore, options: RunnerOptions) -> Runner:
        """A runner of the steps of `plan` on the variables of a store from `new_store`."""


def of(topology: Topology) -> Runtime:
    if topology.runtime == JAX:
        return _Jax(cast("JaxTopology", topology))
    return _TensorFlow(topology)


@dataclasses.dataclass(frozen=True)
class _TensorFlow:
    topology: Topology

    def new_store(self) -> VariableStore:
        return VariableStore(self.topology.strategy)

    def runner(self, plan: StepPlan, store: VariableStore, options: RunnerOptions) -> Runner:
        if self.topology.workers and not options.for_keras:
            return WorkersRunner(
                plan,
                store,
                model_dir=options.model_dir,
                interrupted=options.interrupted,
                tuning=options.tuning,
            )
        return ReplicaRunner(
            plan,
            store,
            next_element=options.next_element,
            interrupted=options.interrupted,
            notes_before=options.notes_before,
            tuning=options.tuning,
            streams=options.streams,
        )


@dataclasses.dataclass(frozen=True)
class _Jax:
    """The runtime on JAX; its methods import `engine/jax`, since JAX may not be installed."""

    topology: JaxTopology

    def new_store(self) -> VariableStore:
        from tpu_estimator_compat.engine.jax import meshes
        from tpu_estimator_compat.engine.jax.variables import DeviceStore

        return DeviceStore(functools.partial(meshes.of_variable, self.topology.mesh))

    def runner(self, plan: StepPlan, store: VariableStore, options: RunnerOptions) -> Runner:
        from tpu_estimator_compat.engine.jax.elements import Elements
        from tpu_estimator_compat.engine.jax.processes.runner import ProcessesRunner
        from tpu_estimator_compat.engine.jax.runner import JaxRunner
        from tpu_estimator_compat.engine.jax.steps import Steps
        from tpu_estimator_compat.engine.jax.variables import DeviceStore

        topology, of_devices = self.topology, cast(DeviceStore, store)
        if topology.workers and options.for_keras:
            raise NotImplementedError(
                f"fit of a keras_model() in {topology.num_hosts} processes of jax.distributed is "
                "not supported. Call train() of the estimator, or start one process."
            )
        steps = Steps(
            plan,
            of_devices,
            topology,
            seed=options.seed,
            makes_host_calls=topology.is_first_process,
            tuning=options.tuning,
        )
        elements = Elements(topology, stacked=not options.for_keras)
        if topology.workers is None:
            return JaxRunner(plan, of_devices, steps, elements, interrupted=options.interrupted)
        return ProcessesRunner(
            plan,
            of_devices,
            topology,
            steps,
            elements,
            interrupted=options.interrupted,
            trains=options.trains,
        )
