"""The device part of a step on JAX, for the runtime and for preflight."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import key
from tpu_estimator_compat.engine.jax.host_part import cut_tail
from tpu_estimator_compat.engine.jax.lowering.replica_step import replica_step
from tpu_estimator_compat.engine.jax.lowering.step_module import Partition
from tpu_estimator_compat.engine.step import cut as step_cut
from tpu_estimator_compat.engine.step.plan import StepPlan


class Wanted(NamedTuple):
    """Names of the tensors and operations that the host fetches from a step.

    `of_stage` names the host stage's results that the host part takes; devices do not compute them.
    """

    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    of_stage: tuple[str, ...]

    @classmethod
    def of_all(cls, wanted: Sequence[Sequence[Sequence[str]]]) -> Wanted:
        """The union of several processes' fetches; sorted, so that all have the same order."""
        kinds = zip(*wanted, strict=True)
        return cls(*(tuple(sorted(set().union(*names))) for names in kinds))


class JaxDevicePart:
    """The part of a step that every replica computes, and the values that the host fetches.

    It does not import JAX.

    Args:
      fed: tensors that are fed with every step, besides the input.
      together: the union of several processes' fetches of the step; None for one process.

    Attributes:
      wanted: the plan's fetches from the devices.
      tail: values that the host computes for every replica, since no device can.
      step: one replica's step, without the tail.
      passed: keys of tensors that are both fed and fetched: the host has their values already.
    """

    def __init__(
        self,
        plan: StepPlan,
        replicas: int,
        fed: Sequence[tf.Tensor] = (),
        together: Wanted | None = None,
    ):
        self.plan = plan
        self.parts = parts = step_cut.cut(plan, fed, apart=plan.host_calls)
        feeds = [*plan.replica_feeds, *fed]
        self.tail = cut_tail(parts.device.fetches, feeds, parts.device.targets, plan.loss)
        awaited = [op for op in self.tail.done if op.type != "Placeholder"]
        targets = [*parts.device.targets, *graph_ops.in_creation_order(awaited)]
        late, given = set(map(key, self.tail.fetches)), set(map(key, feeds))
        device = [t for t in [*parts.device.fetches, *self.tail.feeds] if key(t) not in late]
        wanted = (device, targets, parts.transfers.from_stage)
        self.wanted = Wanted(*(tuple(t.name for t in kind) for kind in wanted))
        self._of_stage = parts.transfers.from_stage
        if together is not None:
            device = [plan.graph.get_tensor_by_name(name) for name in together.fetches]
            targets = [plan.graph.get_operation_by_name(name) for name in together.targets]
            self._of_stage = [plan.graph.get_tensor_by_name(name) for name in together.of_stage]
        if together is not None or awaited:
            plan = plan.of(plan.fetches, targets)
        fetches = [t for t in device if key(t) not in given]
        part = step_cut.device_part(plan, fed, fetches, targets)
        self.step = replica_step(plan, replicas, part)
        self.passed = {key(t) for t in device if key(t) in given}

    @property
    def from_host(self) -> list[tf.Tensor]:
        """The host stage's results for the host part, and the input that stays on the host."""
        taken = set(map(key, self.step.feeds))
        passed = [t for t in self.plan.feeds if key(t) in self.passed - taken]
        return [*self._of_stage, *passed]

    @functools.cached_property
    def number_of_loss(self) -> int | None:
        fetched = list(map(key, self.step.program.fetches))
        loss = None if self.plan.loss is None else key(self.plan.loss)
        return fetched.index(loss) if loss in fetched else None

    @property
    def stops_on(self) -> int | None:
        """The index of the fetch whose NaN ends a loop of steps; None for none."""
        return self.number_of_loss if self.plan.trains else None

    @property
    def partition(self) -> Partition:
        """The partition of the step's input over the devices of a replica; see `Dispatch`."""
        if self.plan.partition is None:
            return None
        parts = dict(zip(map(key, self.plan.feeds), self.plan.partition, strict=True))
        return [parts.get(key(t)) for t in self.step.feeds]

    @property
    def bytes_of_step(self) -> int | None:
        """Bytes of a replica's input and results in one step; None where a shape is unknown."""
        kept = [*self.step.feeds, *self.step.program.fetches]
        if not all(t.shape.is_fully_defined() for t in kept):
            return None
        return sum(t.shape.num_elements() * t.dtype.size for t in kept)
