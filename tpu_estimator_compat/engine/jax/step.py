"""One step of a plan: the device part on JAX's devices, the host part on the host."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import sources
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.jax.device_part import JaxDevicePart, Wanted
from tpu_estimator_compat.engine.jax.host_part import JaxHostPart, JaxHostStage
from tpu_estimator_compat.engine.jax.lowering.findings import Kind, refused
from tpu_estimator_compat.engine.jax.lowering.module_cache import lowered
from tpu_estimator_compat.engine.jax.lowering.scan import scan
from tpu_estimator_compat.engine.jax.lowering.step_module import StepModule
from tpu_estimator_compat.engine.jax.module import DynamicShapeError
from tpu_estimator_compat.engine.jax.step_function import Dispatched, Placed, StepFunction
from tpu_estimator_compat.engine.jax.topology import JaxTopology
from tpu_estimator_compat.engine.jax.variables import DeviceStore
from tpu_estimator_compat.engine.signals.activity import Activity
from tpu_estimator_compat.engine.step.host_function import HostFunction
from tpu_estimator_compat.engine.step.plan import StepPlan

Values = dict[Key, np.ndarray]


class JaxStep:
    """A step of a plan.

    Args:
      store: the variables; those that the step needs are created here.
      fed: tensors whose values the caller gives with every step, the same for all replicas, each
        with the shape of its value.
      together: the union of all processes' fetches of the step; None for the plan's.

    Attributes:
      overlaps: whether the host part may run during the next steps: it uses none of their
        variables, and there is no host stage, which might read one that it changes.
    """

    def __init__(
        self,
        plan: StepPlan,
        store: DeviceStore,
        topology: JaxTopology,
        *,
        fed: Sequence[tuple[tf.Tensor, tuple[int, ...]]] = (),
        together: Wanted | None = None,
    ):
        self.plan, self.store, self._topology = plan, store, topology
        self._shapes = {key(tensor): shape for tensor, shape in fed}
        fed_tensors = [tensor for tensor, _ in fed]
        self._replicas = topology.num_replicas
        self.device = JaxDevicePart(plan, self._replicas, fed_tensors, together)
        self._host = JaxHostPart(self.device.parts, store)
        self._step, self._tail = self.device.step, self.device.tail
        # Each process has only its rows of these feeds: the devices return all rows.
        self._returned = [
            i
            for i, t in enumerate(self._step.feeds)
            if topology.mesh.is_multi_process and key(t) in self.device.passed
        ]
        store.prepare([*self._step.program.handles], trainable=plan.trainable_names())
        self._late: HostFunction | None = None
        if (tail := self._tail).fetches:
            self._late = HostFunction(
                plan.graph, store, tail.fetches, [], tail.feeds, optimize=True, done=tail.done
            )
        self.stage: JaxHostStage | None = None
        if plan.host_stage:
            feeds = self._step.feeds[: len(self._step.feeds) - len(fed)]
            self.stage = JaxHostStage(plan, store, feeds, self.device.from_host)
        self.overlaps = self.stage is None and self._host.uses.isdisjoint(self.variables)
        self._functions: dict[int, StepFunction] = {}

    @functools.cached_property
    def module(self) -> StepModule:
        with Activity("Lowering the step to StableHLO"):
            return lowered(self._step, self._shapes)

    def function(self, most: int) -> StepFunction:
        if most not in self._functions:
            mesh = self._topology.mesh
            try:
                self._functions[most] = StepFunction(
                    self.module,
                    mesh,
                    most,
                    self.device.stops_on,
                    self.device.partition,
                    gathers=mesh.is_multi_process,
                    returned=self._returned,
                    first_replica=self._topology.first_replica,
                )
            except DynamicShapeError as error:
                found = [f for f in scan(self._step) if f.kind is Kind.DYNAMIC_SHAPE]
                raise refused(found, str(error)) from None
        return self._functions[most]

    def dispatch(self, placed: Placed, most: int) -> Dispatched:
        """Starts the steps of `placed` with the stored variables; does not wait."""
        function = self.function(most)
        dispatched = function(self.store.take(function.names), placed)
        self.store.give(function.names, dispatched.variables)
        return dispatched

    def values(self, dispatched: Dispatched, index: int, feeds: Sequence[np.ndarray]) -> Values:
        """The values of step `index`, fed with `feeds`, as [replicas * rows, ...]; waits for it."""
        returned = [self._step.feeds[i] for i in self._returned]
        fetched = [*self._step.program.fetches, *returned]
        found = {
            key(t): np.asarray(value)[index]
            for t, value in zip(fetched, dispatched.fetches, strict=True)
        }
        for tensor, value in zip(self._step.feeds, feeds, strict=True):
            if key(tensor) in self.device.passed:
                found.setdefault(key(tensor), value)
        if self._late is not None:
            self._compute_late(self._late, found)
        return found

    def _compute_late(self, late: HostFunction, found: Values) -> None:
        parts = [
            late([self._of_replica(t, found, r) for t in self._tail.feeds])
            for r in range(self._replicas)
        ]
        for tensor, values in zip(self._tail.fetches, zip(*parts, strict=True), strict=True):
            rows = [v if np.ndim(v) else np.asarray(v)[None] for v in values]
            found[key(tensor)] = np.concatenate(rows)

    def _of_replica(self, tensor: tf.Tensor, values: Values, replica: int) -> np.ndarray:
        value = values[key(tensor)]
        if tensor.shape.rank == 0:
            return value[replica]
        rows = len(value) // self._replicas
        return value[replica * rows : (replica + 1) * rows]

    @property
    def variables(self) -> list[str]:
        return [op.name for op in self._step.variables]

    @property
    def host_variables(self) -> list[str]:
        """Names of the variables that host stage and host part use; none without a host stage."""
        if self.stage is None:
            return []
        return sorted(name for name in self.stage.uses | self._host.uses if name in self.store)

    def loss(self, dispatched: Dispatched, index: int) -> Any:
        """The loss in step `index` of a dispatch, the same on all replicas; waits for it."""
        number = self.device.number_of_loss
        assert number is not None
        return np.asarray(dispatched.fetches[number])[index].flat[0]

    @functools.cached_property
    def has_convolution(self) -> bool:
        return any("Conv" in op.type for op in sources.with_functions(self._step.ops))

    @property
    def has_host_part(self) -> bool:
        return not self._host.is_empty

    def finish(
        self, values: Values, fed: Mapping[Key, np.ndarray], *, makes_calls: bool
    ) -> dict[Key, Any]:
        """Runs the host part on the replicas' results; returns the fetches that it computes."""
        if not self.has_host_part:
            return {}
        same = self.plan.same_on_all_replicas
        sent = {
            k: self._of_replica(t, values, 0) if same else values[key(t)]
            for k, (_, t) in self.device.parts.transfers.pairs.items()
        }
        return self._host({**sent, **fed}, makes_calls=makes_calls)

    def fetches(
        self, values: Values, fed: Mapping[Key, np.ndarray], *, makes_calls: bool
    ) -> list[Any]:
        """Runs the host part on the replicas' results; returns all of the plan's fetches."""
        found = self.finish(values, fed, makes_calls=makes_calls)
        for tensor in self.device.parts.own:
            found[key(tensor)] = self._of_replica(tensor, values, 0)
        return [found[key(t)] for t in self.plan.fetches]
