"""Runs a plan's steps on JAX's devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.graph.graph_ops import key
from tpu_estimator_compat.engine.jax.elements import Elements
from tpu_estimator_compat.engine.jax.step import JaxStep
from tpu_estimator_compat.engine.jax.steps import NOTHING, Finishing, LossSum, StartedSteps, Steps
from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.loop.runner import RunLimits, Runner
from tpu_estimator_compat.engine.step.plan import StepPlan


class JaxRunner(Runner):
    """Runs steps on JAX's devices, in one process."""

    def __init__(self, plan: StepPlan, steps: Steps, elements: Elements, limits: RunLimits):
        self.plan, self.store = plan, steps.store
        self._steps = steps
        self._elements = elements
        self._limits = limits

    def begin_loop(self) -> None:
        self._steps.begin_loop()

    def run(self, iterator: Iterator, steps: int) -> LoopResult:
        own, step = self._steps, self._steps.main
        losses = LossSum(trains=self.plan.trains)
        finishing = Finishing(own)
        exhausted = False
        with eager.eager_mode():
            most = own.most_for(steps)
            chunk = self._elements.next(iterator, min(most, steps), step.stage)
            placed = own.placed(step, chunk, most)
            while chunk.steps and not losses.stopped:
                started = own.dispatch(step, chunk, most, placed)
                finishing.add(started)
                left = steps - losses.steps - chunk.steps
                wanted = 0 if self._limits.interrupted() else min(most, left)
                try:
                    chunk = self._elements.next(iterator, wanted, step.stage) if wanted else NOTHING
                except tf.errors.OpError:
                    finishing.end()  # the dispatched steps count
                    raise
                placed = own.placed(step, chunk, most)  # while the devices compute
                losses.add(started)
                exhausted = chunk.steps < wanted
            finishing.end()
            exhausted |= not losses.steps
            return losses.result(exhausted, None if exhausted else own.counter())

    @property
    def step(self) -> JaxStep:
        return self._steps.main

    def run_once(
        self,
        iterator: Iterator,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]] = (),
    ) -> list[Any]:
        step = self._steps.other(fetches, targets, feeds)
        with eager.eager_mode():
            chunk = self._elements.next(iterator, 1, step.stage)
        if not chunk.steps:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        for _, value in feeds:
            chunk.feeds.append(self._elements.of_all_replicas(value))
        [fetched] = self._steps.fetches(self._steps.dispatch(step, chunk, 1), feeds)
        return fetched

    def element_function(self) -> Callable[[Any], list[tf.Tensor]]:
        def function(element: Any) -> list[tf.Tensor]:
            with eager.eager_mode():
                chunk = self._elements.chunk_of(element, self.step.stage)
                [fetched] = self._steps.fetches(self._steps.dispatch(self.step, chunk, 1))
                return [tf.convert_to_tensor(value) for value in fetched]

        return function

    def can_collect(self, fetches: Sequence[tf.Tensor]) -> bool:
        return all(t.shape.rank for t in fetches)

    def collect(
        self, iterator: Iterator, fetches: Sequence[tf.Tensor], most: int
    ) -> list[list[np.ndarray]]:
        same = list(map(key, self.plan.fetches)) == list(map(key, fetches))
        step = self.step if same and not self.plan.targets else self._steps.other(fetches, [])
        results: list[list[np.ndarray]] = []
        started: StartedSteps | None = None
        with eager.eager_mode():
            for _ in range(most):
                chunk = self._elements.next(iterator, 1, step.stage)
                if not chunk.steps:
                    break
                before, started = started, self._steps.dispatch(step, chunk, 1)
                results += self._steps.fetches(before)
            return results + self._steps.fetches(started)

    def close(self) -> None:
        super().close()
        self._steps.clear()
