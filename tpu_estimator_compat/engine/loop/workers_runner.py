"""Runs a plan's steps together with other workers, one process each, which agree on every step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.cluster import workers
from tpu_estimator_compat.engine.cluster.group import State, check_nothing_fed
from tpu_estimator_compat.engine.cluster.workers import Workers
from tpu_estimator_compat.engine.functions import eager, functions
from tpu_estimator_compat.engine.loop.group_runner import GroupRunner
from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.loop.runner import RunLimits
from tpu_estimator_compat.engine.loop.workers_loop import WorkersLoop
from tpu_estimator_compat.engine.state.sharded_variables import ShardedVariables
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.host_function import as_numpy
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.program import StepProgram, build_step
from tpu_estimator_compat.engine.step.random_streams import RandomStreams

_BROKEN = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)


class WorkersRunner(GroupRunner[Workers]):
    """A `Runner` on one of several workers, which run a step only when all are ready.

    Fetches and loop lengths may differ between workers. The plan is the same on all, and is not
    compiled with XLA.
    """

    def __init__(
        self,
        plan: StepPlan,
        store: VariableStore,
        limits: RunLimits,
        *,
        model_dir: str | None,
    ):
        group = workers.of(store.strategy)
        assert group is not None
        super().__init__(group)
        self.plan, self.store = plan, store
        self._model_dir = model_dir
        self.streams = RandomStreams()
        plan_of_step = plan.of(plan.fetches, plan.targets)
        self._program = build_step(plan_of_step, store, streams=self.streams)
        self._loop: WorkersLoop | None = None
        self._limits = limits
        self._single: dict[tuple[tuple[str, ...], ...], Any] = {}
        if plan.host_stage and (sharded := plan.host_stage.sharded):
            store.sharded = ShardedVariables(sharded, store, group, self._ask)
            if not group.is_chief:
                self._serve(store.sharded.send_own)

    def _the_loop(self) -> WorkersLoop:
        if self._loop is None:
            self._loop = WorkersLoop(
                self._group,
                self._program,
                agree=self._agree,
                interrupted=self._limits.interrupted,
            )
        return self._loop

    def run(self, iterator: Iterator, steps: int) -> LoopResult:
        with self._connected():
            return self._the_loop()(iterator, steps)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        """Replaces errors after which TF's MonitoredSession would go on with a new session here."""
        try:
            yield
        except _BROKEN as error:
            self.states = np.full([self._group.count], State.FAILED)
            raise workers.lost(error, self._model_dir) from None

    def run_once(
        self,
        iterator: Any,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]] = (),
    ) -> list[Any]:
        """Makes a step; refuses feeds, and exchanges that other workers do not make."""
        check_nothing_fed(feeds)
        names = tuple(tuple(x.name for x in each) for each in (fetches, targets))
        with self._connected():
            if names not in self._single:
                # This step must make the exchanges of the others, which run the plan's fetches.
                plan = self.plan.of([*fetches, *self.plan.fetches], targets)
                program = build_step(plan, self.store, streams=self.streams)
                self._check_exchanges(program)
                self._single[names] = functions.function(program)
            with eager.eager_mode(), tf.device("/cpu:0"):
                element = iterator.get_next_as_optional()
                if not self._the_loop().ready(element):
                    raise tf.errors.OutOfRangeError(None, None, "End of sequence")
                outputs = self._single[names](element.get_value())
        return [as_numpy(v) for v in outputs[: len(fetches)]]

    def _check_exchanges(self, program: StepProgram) -> None:
        if more := sorted(program.exchanges() - self._program.exchanges()):
            raise NotImplementedError(
                "A hook or a summary fetches a value that needs exchanges between machines that "
                f"the step does not make: {', '.join(more)}. Let train_op depend on the value, or "
                "read it in host_call."
            )

    def start(self, restored: str | None = None) -> None:
        """Takes the chief's values of all variables; of sharded ones, this machine's rows."""
        sharded = self.store.sharded
        if sharded is not None:
            sharded.check(restored)
        with self._connected(), eager.eager_mode(), tf.device("/cpu:0"):
            names = self._program.shared_variables()
            own = [] if sharded is None else sharded.names
            self._start(" ".join(sorted(self._program.exchanges()) + names + own))
            self.store.take_from_chief(self._group, [n for n in names if n not in own])
            if sharded is not None:
                sharded.take_restored(restored)

    def close(self) -> None:
        super().close()
        self._single.clear()
