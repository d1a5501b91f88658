"""Runs a plan's steps together with other workers, a process each: they agree on every step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.loop.result import LoopResult
from tpu_estimator_compat.loop.workers_loop import WorkersLoop
from tpu_estimator_compat.program.session import Names, as_numpy
from tpu_estimator_compat.program.step_plan import StepPlan
from tpu_estimator_compat.program.step_program import StepProgram
from tpu_estimator_compat.program.variables import VariableStore
from tpu_estimator_compat.runtime import eager, functions, workers
from tpu_estimator_compat.runtime.tuning import DEFAULTS, Tuning
from tpu_estimator_compat.runtime.workers import State

_AT_THE_START, _AT_THE_END = "at the start", "at the end"
_BROKEN = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)


class WorkersRunner:
    """A `Runner` on one of several workers.

    Steps run only where all workers are ready. Each may ask for other fetches and have its own
    loop lengths. Call `leave` or `fail` in the end.

    Args:
      plan: what a step computes, the same on all workers; it is not compiled.
      store: its live variables.
      model_dir: where the checkpoints are, for messages.
      interrupted: asked within long runs whether to end them early.
      tuning: the numbers that lengths of calls go by.

    Attributes:
      states: what the workers said when they stopped; None before that.
    """

    notes_before = False

    def __init__(
        self,
        plan: StepPlan,
        store: VariableStore,
        *,
        model_dir: str | None,
        interrupted: Callable[[], bool] = lambda: False,
        tuning: Tuning = DEFAULTS,
    ):
        group = workers.of(store.strategy)
        assert group is not None
        self.plan, self.store = plan, store
        self.states: np.ndarray | None = None
        self._workers = group
        self._model_dir = model_dir
        self._started = False
        self._program = StepProgram(plan.of(plan.fetches, plan.targets), store)
        self._loop: WorkersLoop | None = None
        self._interrupted = interrupted
        self._tuning = tuning
        self._single: dict[tuple[Names, ...], Any] = {}

    @property
    def ended(self) -> bool:
        """Whether some worker has stopped, and so all of them."""
        return self.states is not None

    def begin_loop(self) -> None:
        """Nothing: every step makes its host calls, on the chief."""

    def _the_loop(self) -> WorkersLoop:
        if self._loop is None:
            assert self.plan.loss is not None  # loops are for steps that have one
            self._loop = WorkersLoop(
                self._workers,
                self._program,
                self.plan.loss.dtype,
                stop_on_nan=self.plan.stop_on_nan,
                interrupted=self._interrupted,
                tuning=self._tuning,
            )
        return self._loop

    def run(self, iterator: Iterator, steps: int) -> LoopResult:
        """See `Runner`."""
        with self._agreeing():
            return self._the_loop()(iterator, steps)

    @contextlib.contextmanager
    def _agreeing(self) -> Iterator[None]:
        """Within, steps are made; what the workers say of them is noted."""
        with self._no_retries():
            try:
                yield
            finally:
                if self._loop is not None and self._loop.states is not None:
                    self.states = self._loop.states

    @contextlib.contextmanager
    def _no_retries(self) -> Iterator[None]:
        """TF's monitored session starts anew after such errors; alone, that leads nowhere."""
        try:
            yield
        except _BROKEN as error:
            self.states = np.full([self._workers.count], State.FAILED)
            raise workers.lost(error, self._model_dir) from None

    def run_once(
        self,
        iterator: Any,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]] = (),
    ) -> list[Any]:
        """See `Runner`.

        Raises:
          NotImplementedError: something is fed, or would be exchanged that no other worker has.
        """
        for tensor, _ in feeds:
            raise NotImplementedError(
                f"A hook feeds {tensor.name!r} in a step of several machines, which is not "
                "supported. Put the value in a variable, and assign it in before_run."
            )
        names = tuple(tuple(x.name for x in each) for each in (fetches, targets))
        with self._agreeing():
            if names not in self._single:
                # The others exchange what the plan fetches, so this step must too.
                plan = self.plan.of([*fetches, *self.plan.fetches], targets)
                self._single[names] = functions.function(
                    StepProgram(plan, self.store, main=self._program)
                )
            with eager.eager_mode(), tf.device("/cpu:0"):
                element = iterator.get_next_as_optional()
                if not self._the_loop().ready(element):
                    raise tf.errors.OutOfRangeError(None, None, "End of sequence")
                outputs = self._single[names](element.get_value())
        return [as_numpy(v) for v in outputs[: len(fetches)]]

    def can_collect(self, fetches: Sequence[tf.Tensor]) -> bool:
        """No: the workers agree on every step."""
        del fetches
        return False

    def collect(
        self, iterator: Iterator, fetches: Sequence[tf.Tensor], most: int
    ) -> list[list[np.ndarray]]:
        """Not to be called: see `can_collect`."""
        raise NotImplementedError

    def finish_host_calls(self, using: str | None = None) -> None:
        """Nothing: they are a part of their steps."""

    def start(self) -> None:
        """Takes over the chief's values of all variables.

        Raises:
          ValueError: the workers have built different graphs.
          MachineLostError: another worker could not start.
        """
        with self._no_retries(), eager.eager_mode(), tf.device("/cpu:0"):
            self._workers.check_all_ready(_AT_THE_START)
            self._started = True
            names = self._program.replicated_variables()
            self._workers.check_same(" ".join(sorted(self._program.exchanges()) + names))
            self.store.take_from_chief(self._workers, names)

    def leave(self) -> None:
        """Waits until all workers have made their last step and have written their files.

        Raises:
          MachineLostError: another worker has failed.
          ValueError: the data of some workers ended while others had more.
        """
        with self._no_retries():
            if self.states is None:
                self.states = self._workers.meet(State.LEAVING)
            elif (left := np.flatnonzero(self.states == State.LEAVING)).size:
                logging.info(
                    "Training stops here because machine %d of %d stopped.",
                    left[0],
                    self._workers.count,
                )
            workers.check_states(self.states)
            self._workers.check_all_ready(_AT_THE_END)
        workers.check_even_data(self.states)

    def fail(self) -> None:
        """Tells the other workers, which wait for this one, that it has failed."""
        if self.states is not None and (self.states == State.FAILED).any():
            return
        place = [] if self.states is None else [_AT_THE_END]
        if not self._started:
            place = [_AT_THE_START]
        # What made it fail is better worth telling than that nobody could be told.
        with contextlib.suppress(tf.errors.OpError):
            self._workers.meet(State.FAILED, *place)

    def close(self) -> None:
        """See `Runner`."""
        self.store.flush_summaries()
        self._single.clear()
