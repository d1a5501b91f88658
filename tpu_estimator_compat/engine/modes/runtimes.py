"""The runtime of a topology: makes the variable store and the runner of a plan's steps."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, cast

from tpu_estimator_compat.engine.loop.replica_runner import ReplicaRunner
from tpu_estimator_compat.engine.loop.runner import RunLimits, Runner
from tpu_estimator_compat.engine.loop.workers_runner import WorkersRunner
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.random_streams import RandomStreams
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.environment import JAX


def new_store(topology: Topology) -> VariableStore:
    if topology.runtime != JAX:
        return VariableStore(topology.strategy)
    from tpu_estimator_compat.engine.jax import meshes  # JAX may not be installed
    from tpu_estimator_compat.engine.jax.variables import DeviceStore

    of_jax: Any = topology
    return DeviceStore(functools.partial(meshes.of_variable, of_jax.mesh))


def new_runner(
    plan: StepPlan,
    store: VariableStore,
    topology: Topology,
    limits: RunLimits,
    *,
    streams: RandomStreams,
    model_dir: str | None,
    next_element: Callable[[Iterator], Any] | None,
) -> Runner:
    """A runner of the steps of `plan` on the variables of a store from `new_store`.

    Args:
      streams: of random ops, which the runner continues.
      next_element: takes the next element from the iterator, where TensorFlow builds a step. None
        where Keras calls the runner: elements of all replicas are concatenated then, and machines
        do not agree on steps.
    """
    if topology.runtime == JAX:
        return _on_jax(plan, store, topology, limits, for_keras=next_element is None)
    if topology.workers and next_element:
        return WorkersRunner(plan, store, limits, model_dir=model_dir)
    taken = next_element or next
    return ReplicaRunner(plan, store, limits, next_element=taken, streams=streams)


def _on_jax(
    plan: StepPlan, store: VariableStore, topology: Any, limits: RunLimits, *, for_keras: bool
) -> Runner:
    from tpu_estimator_compat.engine.jax.elements import Elements
    from tpu_estimator_compat.engine.jax.processes.runner import ProcessesRunner
    from tpu_estimator_compat.engine.jax.runner import JaxRunner
    from tpu_estimator_compat.engine.jax.steps import Steps
    from tpu_estimator_compat.engine.jax.variables import DeviceStore

    if topology.workers and for_keras:
        raise NotImplementedError(
            f"fit of a keras_model() in {topology.num_hosts} processes of jax.distributed is "
            "not supported. Call train() of the estimator, or start one process."
        )
    steps = Steps(plan, cast(DeviceStore, store), topology)
    elements = Elements(topology, stacked=not for_keras)
    if topology.workers is None:
        return JaxRunner(plan, steps, elements, limits)
    return ProcessesRunner(plan, topology, steps, elements, limits)
