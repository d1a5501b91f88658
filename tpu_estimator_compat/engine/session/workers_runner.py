"""Runs a plan's steps together with other workers, a process each: they agree on every step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.loop.workers_loop import Settle, WorkersLoop
from tpu_estimator_compat.engine.runtime import eager, functions, workers
from tpu_estimator_compat.engine.runtime.tuning import DEFAULTS, Tuning
from tpu_estimator_compat.engine.runtime.workers import State
from tpu_estimator_compat.engine.session.graph_session import Names
from tpu_estimator_compat.engine.state.sharded_variables import ShardedVariables
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.host_function import as_numpy
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.program import StepProgram
from tpu_estimator_compat.engine.step.random_streams import RandomStreams

_AT_THE_START, _AT_THE_END = "at the start", "at the end"
_BROKEN = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)


class WorkersRunner:
    """A `Runner` on one of several workers.

    Steps run only where all workers are ready. Each may ask for other fetches and have its own
    loop lengths. Call `leave` or `fail` in the end.

    Args:
      plan: the computation of a step, the same on all workers; it is not compiled.
      store: its live variables.
      model_dir: the directory of the checkpoints, for messages.
      interrupted: asked within long runs whether to end them early.
      tuning: the numbers that lengths of calls go by.

    Attributes:
      states: the states of the workers when they stopped; None before that.
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
        self._streams = RandomStreams()
        plan_of_step = plan.of(plan.fetches, plan.targets)
        self._program = StepProgram(plan_of_step, store, streams=self._streams)
        self._loop: WorkersLoop | None = None
        self._interrupted = interrupted
        self._tuning = tuning
        self._single: dict[tuple[Names, ...], Any] = {}
        if plan.host_stage and (sharded := plan.host_stage.sharded):
            store.sharded = ShardedVariables(sharded, store, group, self._ask_to_save)

    @property
    def ended(self) -> bool:
        """Whether some worker has stopped, and so all of them."""
        return self.states is not None

    def begin_loop(self) -> None:
        """Does nothing: every step makes its host calls, on the chief."""

    def _the_loop(self) -> WorkersLoop:
        if self._loop is None:
            assert self.plan.loss is not None  # loops are for steps that have one
            self._loop = WorkersLoop(
                self._workers,
                self._program,
                self.plan.loss.dtype,
                stop_on_nan=self.plan.stop_on_nan,
                settle=self._settle,
                interrupted=self._interrupted,
                tuning=self._tuning,
            )
        return self._loop

    @property
    def _settle(self) -> Settle | None:
        """The function that sends the chief, when it saves, this machine's own values; or None."""
        if self.store.sharded is None or self._workers.is_chief:
            return None
        return self.store.sharded.settle

    def _meet(self, state: State, *place: str) -> np.ndarray:
        """The states of all machines, once the chief has saved what it wants to save."""
        states = self._workers.meet(state, *place)
        return self._settle(states, state, *place) if self._settle else states

    def _ask_to_save(self) -> None:
        """Tells the other workers, wherever they wait for this one, that it saves.

        Raises:
          MachineLostError: another worker has failed: the checkpoint would lack its rows.
        """
        with self._no_retries():
            if self.states is None:
                self._check(self._workers.meet(State.SAVING))
            else:
                workers.check_states(self.states)
                self._check(self._workers.meet(State.SAVING, _AT_THE_END))

    def _check(self, states: np.ndarray) -> None:
        """Raises MachineLostError where a machine failed, which nobody needs to be told then."""
        if (states == State.FAILED).any():
            self.states = states
        workers.check_states(states)

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
        workers.check_nothing_fed(feeds)
        names = tuple(tuple(x.name for x in each) for each in (fetches, targets))
        with self._agreeing():
            if names not in self._single:
                # The others exchange what the plan fetches, so this step must too.
                plan = self.plan.of([*fetches, *self.plan.fetches], targets)
                self._single[names] = functions.function(
                    StepProgram(plan, self.store, main=self._program, streams=self._streams)
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
        """Does nothing: host calls are a part of their steps."""

    def start(self, restored: str | None = None) -> None:
        """Takes over the chief's values of all variables, or what it has restored of own rows.

        Raises:
          ValueError: the workers have built different graphs, or the checkpoint has no rows of
            theirs.
          MachineLostError: another worker could not start.
        """
        sharded = self.store.sharded
        if sharded is not None:
            sharded.check(restored)
        with self._no_retries(), eager.eager_mode(), tf.device("/cpu:0"):
            self._check(self._workers.meet(State.READY, _AT_THE_START))
            self._started = True
            names = self._program.shared_variables()
            own = [] if sharded is None else sharded.names
            self._workers.check_same(" ".join(sorted(self._program.exchanges()) + names + own))
            self.store.take_from_chief(self._workers, [n for n in names if n not in own])
            if sharded is not None:
                sharded.take_restored(restored)

    def leave(self) -> None:
        """Waits until all workers have made their last step and have written their files.

        Raises:
          MachineLostError: another worker has failed.
          ValueError: the data of some workers ended while others had more.
        """
        with self._no_retries():
            if self.states is None:
                self.states = self._meet(State.LEAVING)
            elif (left := np.flatnonzero(self.states == State.LEAVING)).size:
                logging.info(
                    "Training stops here because machine %d of %d stopped.",
                    left[0],
                    self._workers.count,
                )
            workers.check_states(self.states)
            self._check(self._meet(State.READY, _AT_THE_END))
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
