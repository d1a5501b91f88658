"""The session of a mode that runs on several machines: they agree on every step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.loop.workers_loop import WorkersLoop
from tpu_estimator_compat.program.capture import CapturedGraph
from tpu_estimator_compat.program.session import as_numpy
from tpu_estimator_compat.program.step_program import StepProgram
from tpu_estimator_compat.program.variables import VariableStore
from tpu_estimator_compat.runtime import eager, functions, workers
from tpu_estimator_compat.runtime.workers import State
from tpu_estimator_compat.session.session_creator import StepSessionCreator
from tpu_estimator_compat.session.step_session import StepSession

_AT_THE_START, _AT_THE_END = "at the start", "at the end"
_BROKEN = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)


class WorkersSession(StepSession):
    """A StepSession on one of several machines.

    Steps run only where all machines are ready. Each may ask for other fetches and have its own
    loop lengths. Call `leave` or `fail` in the end.

    Args:
      captured: the captured graph of the mode, the same on all machines.
      store: its live variables.
      *args: see `StepSession`.
      model_dir: where the checkpoints are, for messages.
      **kwargs: see `StepSession`.

    Attributes:
      states: what the machines said when they stopped; None before that.
    """

    def __init__(
        self,
        captured: CapturedGraph,
        store: VariableStore,
        *args: Any,
        model_dir: str | None,
        **kwargs: Any,
    ):
        group = workers.of(store.strategy)
        assert group is not None
        self._workers = group
        self._model_dir = model_dir
        self.states: np.ndarray | None = None
        self._agreeing: WorkersLoop | None = None
        self._started = False
        super().__init__(captured, store, *args, **kwargs)

    def _step_program(
        self,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        jit: bool = True,
        fed: Sequence[tf.Tensor] = (),
        queued: bool = False,
    ) -> StepProgram:
        del jit, queued  # a step that exchanges is neither compiled nor taken apart
        if fed:
            raise NotImplementedError(
                f"A hook feeds {fed[0].name!r} in a step of several machines, which is not "
                "supported. Put the value in a variable, and assign it in before_run."
            )
        main = getattr(self, "_program", None)
        if main is not None:  # the others exchange what it fetches, so this one must too
            fetches = [*fetches, *main.fetches]
        return StepProgram(
            self.captured,
            self.store,
            fetches,
            targets,
            mean=[] if self._loss is None else [self._loss],
            main=main,
        )

    def _make_loop(self) -> WorkersLoop:
        if self._agreeing is None:
            self._agreeing = WorkersLoop(
                self._workers,
                self._program,
                self._loss.dtype,
                stop_on_nan=self._stop_on_nan,
                interrupted=lambda: self.interrupted(),
                tuning=self._tuning,
            )
        return self._agreeing

    def _run_steps(
        self, fetches: Sequence[tf.Tensor], targets: Sequence[tf.Operation]
    ) -> list[Any]:
        with self._no_retries():
            try:
                return super()._run_steps(fetches, targets)
            finally:
                self._note_states()

    def _note_states(self) -> None:
        if self._agreeing is None or self._agreeing.states is None:
            return
        self.states = self._agreeing.states
        self._exhausted = True

    @contextlib.contextmanager
    def _no_retries(self) -> Iterator[None]:
        """TF's monitored session starts anew after such errors; alone, that leads nowhere."""
        try:
            yield
        except _BROKEN as error:
            self.states = np.full([self._workers.count], State.FAILED)
            raise workers.lost(error, self._model_dir) from None

    def _run_single(
        self,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        fed: Sequence[tf.Tensor] = (),
        values: Sequence[np.ndarray] = (),
    ) -> list[Any]:
        names = tuple(tuple(x.name for x in each) for each in (fetches, targets, fed))
        if names not in self._single:
            program = self._step_program(fetches, targets, fed=fed)
            self._single[names] = functions.function(program)
        with eager.eager_mode(), tf.device("/cpu:0"):
            iterator: Any = self.iterator()
            element = iterator.get_next_as_optional()
            if not self._make_loop().ready(element):
                raise tf.errors.OutOfRangeError(None, None, "End of sequence")
            outputs = self._single[names](element.get_value())
        return [as_numpy(v) for v in outputs[: len(fetches)]]

    def start(self) -> None:
        """Takes over the chief's values of all variables.

        Raises:
          ValueError: the machines have built different graphs.
          MachineLostError: another machine could not start.
        """
        with self._no_retries(), eager.eager_mode(), tf.device("/cpu:0"):
            self._workers.check_all_ready(_AT_THE_START)
            self._started = True
            names = self._program.replicated_variables()
            self._workers.check_same(" ".join(sorted(self._program.exchanges()) + names))
            self.store.take_from_chief(self._workers, names)

    def leave(self) -> None:
        """Waits until all machines have made their last step and have written their files.

        Raises:
          MachineLostError: another machine has failed.
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

    def fail(self) -> None:
        """Tells the other machines, which wait for this one, that it has failed."""
        if self.states is not None and (self.states == State.FAILED).any():
            return
        place = [] if self.states is None else [_AT_THE_END]
        if not self._started:
            place = [_AT_THE_START]
        # What made it fail is better worth telling than that nobody could be told.
        with contextlib.suppress(tf.errors.OpError):
            self._workers.meet(State.FAILED, *place)


@contextlib.contextmanager
def leaving_together(
    creator: StepSessionCreator, hooks: Sequence[Any]
) -> Iterator[tf.compat.v1.train.MonitoredSession]:
    """A MonitoredSession; where there are other machines, they start and end together.

    Args:
      creator: makes the session.
      hooks: called by the monitored session.

    Raises:
      MachineLostError: another machine has failed.
      ValueError: the data of some machines ended while others had more.
    """
    try:
        monitored = tf.compat.v1.train.MonitoredSession(session_creator=creator, hooks=hooks)
        with monitored:
            yield monitored
    except BaseException:
        if isinstance(creator.session, WorkersSession):
            creator.session.fail()
        raise
    if isinstance(creator.session, WorkersSession):
        creator.session.leave()
        if (states := creator.session.states) is not None:
            _check_even_data(states)


def _check_even_data(states: np.ndarray) -> None:
    """Raises ValueError where some machines had data left when that of others ended."""
    ended = [i for i, state in enumerate(states) if state == State.OUT_OF_DATA]
    going_on = [i for i, state in enumerate(states) if state == State.READY]
    if not ended or not going_on:
        return
    raise ValueError(
        f"The data of machine(s) {ended} ended while machine(s) {going_on} had more. All steps "
        "until then are in the checkpoint. Give every machine the same number of batches, or "
        "repeat() the data and limit training by steps or max_steps."
    )
