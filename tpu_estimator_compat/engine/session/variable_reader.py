"""Reads the variables that a run fetches, before or after its last step.

A run makes one step, or a loop of which hooks see only the last step. The time at which
TensorFlow 1 read a variable depended on the variable's kind and on the caller:

| | a run with `use_tpu=False` | a loop of a TPU |
|---|---|---|
| a resource variable | before the last step | after the loop |
| a ref variable | after it; the counter that TensorFlow's hooks fetch, before it | after the loop |
| computed from variables alone, as a summary is | before the last step | within the last step |
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.session.graph_session import RunnerSession
from tpu_estimator_compat.engine.session.step_fetches import StepFetches


class VariableReader:
    """Reads the variables that a run fetches; `after_loop` picks the column of the table above."""

    def __init__(self, session: RunnerSession, *, after_loop: bool):
        self.after_loop = after_loop
        self._session = session
        self._plan = session.runner.plan
        self._of_variables: dict[Key, bool] = {}

    def plain(self, asked: StepFetches) -> dict[Key, Any]:
        return {k: self._session.direct_read(t) for k, t in asked.variables.items()}

    def before_step(self, asked: StepFetches) -> dict[Key, Any]:
        """Values that are read before a single step."""
        if self.after_loop:
            return {}
        read = self.plain(asked)
        alone = [
            t
            for k, t in zip(asked.keys, asked.tensors, strict=True)
            if k not in asked.variables and self._is_of_variables(t)
        ]
        if alone:
            values = self._session.evaluate_outside(alone)
            read.update(zip(map(key, alone), values, strict=True))
        return read

    def after_step(self, asked: StepFetches) -> dict[Key, Any]:
        if self.after_loop:
            return self.plain(asked)
        refs = {k: t for k, t in asked.variables.items() if self._session.is_ref(t)}
        return {k: self._session.direct_read(t) for k, t in refs.items()}

    def counter_alone(self, asked: StepFetches) -> bool:
        """Whether all fetched variables are the global step, which the runner notes itself."""
        counter = self._session.global_step_variable()
        return self._session.runner.notes_before and all(
            self._session.variable_behind(t) is counter for t in asked.variables.values()
        )

    def _is_of_variables(self, tensor: tf.Tensor) -> bool:
        k = key(tensor)
        if k not in self._of_variables:
            ops = graph_ops.ancestors([tensor.op], ())
            reads = {op.type for op in ops if graph_ops.is_variable_handle(op)} | {"ReadVariableOp"}
            self._of_variables[k] = len(reads) > 1 and not any(
                (graph_ops.definition(op).is_stateful and op.type not in reads)
                or graph_ops.has_effect(op)
                or op.type.startswith("Placeholder")
                or self._plan.needs_step(op)
                for op in ops
            )
        return self._of_variables[k]
