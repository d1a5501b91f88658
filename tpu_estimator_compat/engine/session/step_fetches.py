"""Fetches and targets of one run, classified once by their place in a step's plan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.step.plan import StepPlan


class StepFetches:
    """The fetches of one run.

    Args:
      variable_behind: returns the live variable whose plain value a tensor is, or None.

    Attributes:
      variables: the fetches that are plain values of variables, without the loss.
      derived: the other fetches, without the loss.
      makes_steps: whether the plan's targets are among the targets.
      needs_step: whether a fetch or target has a value only within a step.
    """

    def __init__(
        self,
        plan: StepPlan,
        tensors: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        variable_behind: Callable[[tf.Tensor], tf.Variable | None],
    ):
        self.tensors, self.targets = tensors, targets
        self.keys = [key(t) for t in tensors]
        self.variables: dict[Key, tf.Tensor] = {}
        self.derived: dict[Key, tf.Tensor] = {}
        loss = None if plan.loss is None else key(plan.loss)
        for k, tensor in zip(self.keys, tensors, strict=True):
            if k != loss:
                plain = variable_behind(tensor) is not None
                (self.variables if plain else self.derived)[k] = tensor
        self._plan = plan
        # A prediction makes one step per run: it has no loop.
        of_plan = set() if plan.loss is None else {op.name for op in plan.targets}
        names = {op.name for op in targets}
        self._others = names - of_plan
        self.makes_steps = bool(of_plan) and of_plan <= names
        # A step takes its element even where nothing in it depends on the input.
        asked = [*(t.op for t in tensors), *targets]
        self.needs_step = self.makes_steps or any(map(plan.needs_step, asked))

    @functools.cached_property
    def reads_alone(self) -> bool:
        return not self.targets and all(k in self.variables for k in self.keys)

    @functools.cached_property
    def in_loop(self) -> bool:
        """Whether a loop can serve the fetches: they need no value of a step but the loss."""
        plan = self._plan
        if plan.loss is None or not self.makes_steps or self._others:
            return False
        needed = graph_ops.ancestors([t.op for t in self.derived.values()], {key(plan.loss)})
        roots = plan.input_roots | plan.replica_ops
        roots |= {name for name, _ in plan.host_placeholders}
        # The step changes variables and tables, and random ops would draw a second time: ops that
        # depend on either belong to the step.
        return not any(
            op.name in roots or graph_ops.is_handle(op) or graph_ops.draws(op) for op in needed
        )
