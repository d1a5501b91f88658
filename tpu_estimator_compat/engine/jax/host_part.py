"""The host's share of a step on JAX: host stage and host part, before and after the devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.functions import functions
from tpu_estimator_compat.engine.graph import graph_ops, sources
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.jax.lowering import replacements, xla_collectives
from tpu_estimator_compat.engine.jax.lowering.scan import supported_ops
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step import collectives
from tpu_estimator_compat.engine.step.cut import Part, StepParts
from tpu_estimator_compat.engine.step.host_function import HostFunction
from tpu_estimator_compat.engine.step.host_stage_program import OfElement
from tpu_estimator_compat.engine.step.plan import StepPlan


class JaxHostStage:
    """The host stage of a step, which reads the variables `uses`.

    Args:
      store: the variables; those that the stage reads are created here.
      feeds: the subset of the plan's `replica_feeds` that the devices take.
      results: the stage's results that the host part takes.
    """

    def __init__(
        self,
        plan: StepPlan,
        store: VariableStore,
        feeds: Sequence[tf.Tensor],
        results: Sequence[tf.Tensor],
    ):
        self._results = [key(t) for t in results]
        program = OfElement(plan, feeds, results)
        self.uses = {op.name for op in program.handles}
        store.prepare(program.handles, replicated=False, trainable=plan.trainable_names())
        self._function = functions.function(
            lambda *values: program(values, store.host_handle),
            # One trace for all elements, whose numbers of ids differ.
            input_signature=[tf.TensorSpec(t.shape, t.dtype) for t in plan.feeds],
        )

    def __call__(
        self, elements: Sequence[Sequence[np.ndarray]]
    ) -> tuple[list[np.ndarray], dict[Key, np.ndarray]]:
        """Computes one step's stage from each replica's element, as flat parts; call it eagerly.

        Returns the replicas' input, stacked, and the results, concatenated over replicas.
        """
        found = [self._function(*parts) for parts in elements]
        fed, results = ([[t.numpy() for t in of_one[i]] for of_one in found] for i in (0, 1))
        joined = [
            np.concatenate(of_all) if of_all[0].ndim else np.stack(of_all)
            for of_all in zip(*results, strict=True)
        ]
        stacked = [np.stack(of_all) for of_all in zip(*fed, strict=True)]
        return stacked, dict(zip(self._results, joined, strict=True))


@dataclasses.dataclass(frozen=True)
class Tail:
    """Values that no device can compute, and the tensors from which the host computes them.

    The values wait for the operations `done`, which the device has run by then.
    """

    fetches: list[tf.Tensor]
    feeds: list[tf.Tensor]
    done: set[tf.Operation]


def cut_tail(
    fetches: Sequence[tf.Tensor],
    feeds: Sequence[tf.Tensor],
    targets: Sequence[tf.Operation],
    loss: tf.Tensor | None,
) -> Tail:
    """Cuts off operations for which XLA has no kernel, and the operations that depend on them.

    Operations that `targets` or `loss` need stay; XLA, or a check before it, refuses them.
    """
    stops = {key(t) for t in feeds}
    needed = graph_ops.ancestors([*targets, *([] if loss is None else [loss.op])], stops)
    beyond: set[tf.Operation] = set()
    for op in graph_ops.in_creation_order(graph_ops.ancestors([t.op for t in fetches], stops)):
        behind = any(t.op in beyond for t in op.inputs if key(t) not in stops)
        if op not in needed and (behind or not _is_lowered(op)):
            beyond.add(op)
    late = [t for t in fetches if t.op in beyond]
    inside = graph_ops.ancestors([t.op for t in late], stops) & beyond
    frontier = {key(t): t for op in inside for t in op.inputs if t.op not in beyond}
    done = {c for op in inside for c in op.control_inputs if c not in beyond}
    return Tail(late, [t for t in frontier.values() if not graph_ops.is_handle(t.op)], done)


def _is_lowered(op: tf.Operation) -> bool:
    if op.type == "Placeholder" or op.type in collectives.OP_TYPES or graph_ops.is_handle(op):
        return True
    if replacements.is_replaced(op):
        return True
    if op.type in xla_collectives.TPU_ONLY or any(t.dtype == tf.string for t in op.outputs):
        return False
    return op.type in supported_ops() or sources.is_function(op)


class JaxHostPart:
    """The host part of a step: metrics, host calls, fetches that no replica computes."""

    def __init__(self, parts: StepParts, store: VariableStore):
        self.uses: set[str] = set()
        self._parts = parts
        self._in_step = self._function(store, parts.host)
        self._calls = self._function(store, parts.host_calls)

    def _function(self, store: VariableStore, part: Part) -> HostFunction | None:
        if part.is_empty:
            return None
        wanted = [*(t.op for t in part.fetches), *part.targets]
        ops = graph_ops.ancestors(wanted, set(map(key, part.feeds)))
        self.uses |= {op.name for op in ops if graph_ops.is_handle(op)}
        graph = self._parts.plan.graph
        return HostFunction(graph, store, part.fetches, part.targets, part.feeds, optimize=True)

    @property
    def is_empty(self) -> bool:
        return self._in_step is None and self._calls is None

    def __call__(
        self, values: Mapping[Key, np.ndarray], *, makes_calls: bool
    ) -> dict[Key, np.ndarray]:
        """Computes one step's host part from the values of its placeholders and fed tensors."""
        found: dict[Key, np.ndarray] = {}
        if self._in_step is not None:
            results = self._in_step([values[key(t)] for t in self._parts.host.feeds])
            found = dict(zip(map(key, self._parts.host.fetches), results, strict=True))
        if self._calls is not None and makes_calls:
            self._calls([values[key(t)] for t in self._parts.host_calls.feeds])
        return found
