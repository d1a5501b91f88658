"""What the host computes of a step, and what it needs of the devices for that."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.lowering import sources, xla_collectives
from tpu_estimator_compat.lowering.scan import supported_ops
from tpu_estimator_compat.program import collectives, graph_ops
from tpu_estimator_compat.program.graph_ops import Key, key
from tpu_estimator_compat.program.session import HostFunction
from tpu_estimator_compat.program.step_plan import StepPlan
from tpu_estimator_compat.program.variables import VariableStore


@dataclasses.dataclass(frozen=True)
class Tail:
    """Values that a device cannot compute, and the values from which the host can.

    Attributes:
      fetches: such tensors.
      feeds: what they are computed from.
    """

    fetches: list[tf.Tensor]
    feeds: list[tf.Tensor]


def cut_tail(
    fetches: Sequence[tf.Tensor], feeds: Sequence[tf.Tensor], targets: Sequence[tf.Operation]
) -> Tail:
    """Cuts off what XLA has no kernel for, and what follows from it.

    What the step itself needs stays where it is: XLA, or whoever looks before, refuses it.

    Args:
      fetches: what is wanted of a replica.
      feeds: what it is fed.
      targets: what it runs for its effect.
    """
    stops = {key(t) for t in feeds}
    needed = graph_ops.ancestors(targets, stops)
    beyond: set[tf.Operation] = set()
    for op in graph_ops.in_creation_order(graph_ops.ancestors([t.op for t in fetches], stops)):
        behind = any(t.op in beyond for t in op.inputs if key(t) not in stops)
        if op not in needed and (behind or not _is_lowered(op)):
            beyond.add(op)
    late = [t for t in fetches if t.op in beyond]
    inside = graph_ops.ancestors([t.op for t in late], stops) & beyond
    frontier = {key(t): t for op in inside for t in op.inputs if t.op not in beyond}
    return Tail(late, [t for t in frontier.values() if not graph_ops.is_handle(t.op)])


def _is_lowered(op: tf.Operation) -> bool:
    if op.type == "Placeholder" or op.type in collectives.OP_TYPES or graph_ops.is_handle(op):
        return True
    if op.type in xla_collectives.TPU_ONLY or any(t.dtype == tf.string for t in op.outputs):
        return False
    return op.type in supported_ops() or sources.is_function(op)


def sent_to_host(plan: StepPlan, fed: Sequence[tf.Tensor] = ()) -> dict[Key, tf.Tensor]:
    """The replicas' tensors that the host's share wants, by the placeholder that stands for each.

    Args:
      plan: what the step computes.
      fed: tensors whose values the caller gives with every step.
    """
    fetches = [t for t in plan.fetches if plan.is_host(t.op)]
    targets = [op for op in plan.targets if plan.is_host(op)]
    stops = {*plan.host_placeholders, *map(key, fed)}
    ops = graph_ops.ancestors([*(t.op for t in fetches), *targets], stops)
    used = _used(ops, fetches)
    return {k: behind for k, (_, behind) in plan.host_placeholders.items() if k in used}


def _used(ops: Iterable[tf.Operation], fetches: Sequence[tf.Tensor]) -> set[Key]:
    used = {key(t) for op in ops for t in op.inputs} | {key(t) for t in fetches}
    return used | {(op.name, 0) for op in ops}


class HostShare:
    """The host's share of a step: metrics, host calls, fetches that no replica computes.

    Args:
      plan: what the step computes.
      store: the variables.
      fed: tensors whose values the caller gives with every step.

    Attributes:
      uses: names of the variables and resources that it uses.
    """

    def __init__(
        self,
        plan: StepPlan,
        store: VariableStore,
        fed: Sequence[tf.Tensor] = (),
    ):
        self._fetches = [t for t in plan.fetches if plan.is_host(t.op)]
        targets = [op for op in plan.targets if plan.is_host(op)]
        in_step = [op for op in targets if op.name not in plan.host_calls]
        calls = [op for op in targets if op.name in plan.host_calls]
        self.uses: set[str] = set()
        self._in_step = self._function(plan, store, self._fetches, in_step, fed)
        self._calls = self._function(plan, store, [], calls, fed)

    def _function(
        self,
        plan: StepPlan,
        store: VariableStore,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        fed: Sequence[tf.Tensor],
    ) -> tuple[HostFunction, list[tf.Tensor]] | None:
        if not fetches and not targets:
            return None
        known = {k: stands for k, (stands, _) in plan.host_placeholders.items()}
        known |= {key(t): t for t in fed}
        ops = graph_ops.ancestors([*(t.op for t in fetches), *targets], known)
        used = _used(ops, fetches)
        feeds = [stands for k, stands in known.items() if k in used]
        self.uses |= {op.name for op in ops if graph_ops.is_handle(op)}
        return HostFunction(plan.graph, store, fetches, targets, feeds), feeds

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return self._in_step is None and self._calls is None

    def __call__(
        self, values: Mapping[Key, np.ndarray], *, makes_calls: bool
    ) -> dict[Key, np.ndarray]:
        """Does it for one step.

        Args:
          values: of the placeholders and of fed tensors, by key.
          makes_calls: whether host calls are due in this step.

        Returns:
          The values of its fetches.
        """
        found: dict[Key, np.ndarray] = {}
        if self._in_step is not None:
            function, feeds = self._in_step
            results = function([values[key(t)] for t in feeds])
            found = dict(zip(map(key, self._fetches), results, strict=True))
        if self._calls is not None and makes_calls:
            function, feeds = self._calls
            function([values[key(t)] for t in feeds])
        return found
