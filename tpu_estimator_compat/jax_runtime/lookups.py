"""The embedding lookups of each replica's element before a step on JAX's devices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.program.graph_ops import Key, key
from tpu_estimator_compat.program.lookup_program import LookupProgram
from tpu_estimator_compat.program.step_plan import StepPlan
from tpu_estimator_compat.program.variables import VariableStore
from tpu_estimator_compat.runtime import functions


class HostLookups:
    """The lookups of a step, such as rows of embedding tables; the host has what they read.

    Args:
      plan: a plan with lookups.
      store: the variables; those that are looked up in are created here.
      feeds: of the plan's `replica_feeds` those that the devices take.
      results: the lookups' results that the host's share takes.

    Attributes:
      uses: names of the variables that it reads.
    """

    def __init__(
        self,
        plan: StepPlan,
        store: VariableStore,
        feeds: Sequence[tf.Tensor],
        results: Sequence[tf.Tensor],
    ):
        self._results = [key(t) for t in results]
        program = LookupProgram(plan, feeds, results)
        self.uses = {op.name for op in program.handles}
        store.prepare(program.handles, replicated=False, trainable=plan.trainable_names())
        self._function = functions.function(
            lambda *values: program(values, store.host_handle),
            # Elements have ids of any number: one trace for all.
            input_signature=[tf.TensorSpec(t.shape, t.dtype) for t in plan.feeds],
        )

    def __call__(
        self, elements: Sequence[Sequence[np.ndarray]]
    ) -> tuple[list[np.ndarray], dict[Key, np.ndarray]]:
        """Looks up for one step; call it eagerly.

        Args:
          elements: of every replica, the flat parts of its element.

        Returns:
          What the replicas are fed, stacked; and the results, concatenated over replicas.
        """
        found = [self._function(*parts) for parts in elements]
        fed, results = ([[t.numpy() for t in of_one[i]] for of_one in found] for i in (0, 1))
        joined = [
            np.concatenate(of_all) if of_all[0].ndim else np.stack(of_all)
            for of_all in zip(*results, strict=True)
        ]
        stacked = [np.stack(of_all) for of_all in zip(*fed, strict=True)]
        return stacked, dict(zip(self._results, joined, strict=True))
