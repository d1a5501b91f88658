"""The host stage of a step on JAX: the host computes tensors from each replica's element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.runtime import functions
from tpu_estimator_compat.engine.state.variables import VariableStore
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
