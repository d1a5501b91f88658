"""The interface of a runtime to sessions and Keras models."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.random_streams import RandomStreams


@dataclasses.dataclass
class RunLimits:
    """The limits for the next run, set by the schedule; a session that replaces another keeps them.

    Attributes:
      steps: steps of the next run of the plan's targets.
      reads_after_loop: whether hooks get control after TPU loops, and see variables as they are
        then: see `VariableReader`.
      host_calls_may_lag: whether host calls may be unfinished when a run returns.
      interrupted: polled in long runs: whether to end them early.
    """

    steps: int = 1
    reads_after_loop: bool = True
    host_calls_may_lag: bool = False
    interrupted: Callable[[], bool] = lambda: False


class Runner:
    """Runs the steps of one plan for a session or a Keras model.

    A runtime defines `run` and `run_once`. The methods that do nothing here are for runtimes with a
    queue of host calls, or on several machines.

    Attributes:
      store: the variables by name. Reading one copies its value to the host, `assign` copies to the
        replicas. The plan's variables exist once the runner is made.
      streams: random streams that the session's other functions share; None where steps have
        their own.
      states: the states of the machines when they stopped; None before that, and for one machine.
    """

    plan: StepPlan
    store: VariableStore
    streams: RandomStreams | None = None
    states: np.ndarray | None = None

    @property
    def ended(self) -> bool:
        """Whether no more steps can be made, even if this process has more data."""
        return self.states is not None

    @property
    def notes_before(self) -> bool:
        """Whether `run` notes the global step before its last step."""
        return False

    def start(self, restored: str | None = None) -> None:
        """Called before the first step; `restored`: the checkpoint that was restored, if any."""

    def begin_loop(self) -> None:
        """Resets the count of steps in a loop, by which host calls run every n-th step."""

    def run(self, iterator: Iterator, steps: int) -> LoopResult:
        """Makes up to `steps` steps of the plan; fewer at the end of the data, or after a NaN."""
        raise NotImplementedError

    def run_once(
        self,
        iterator: Iterator,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]] = (),
    ) -> list[Any]:
        """Makes one step with other fetches and targets of the plan's graph, and fed values.

        Returns values as a TF1 session did; raises OutOfRangeError at the end of the data.
        """
        raise NotImplementedError

    def can_collect(self, fetches: Sequence[tf.Tensor]) -> bool:
        """Whether `collect` can evaluate `fetches`."""
        del fetches
        return False

    def collect(
        self, iterator: Iterator, fetches: Sequence[tf.Tensor], most: int
    ) -> list[list[np.ndarray]]:
        """Evaluates `fetches` for up to `most` input elements in one call.

        The fetches, the same in every call, have a batch dimension. Returns a list of values per
        element, fewer than `most` at the end of the data.
        """
        raise NotImplementedError

    def element_function(self) -> Callable[[Any], list[tf.Tensor]]:
        """A function from one element of Keras' data, over all replicas, to the plan's fetches."""
        raise NotImplementedError

    def finish_host_calls(self, using: str | None = None) -> None:
        """Waits for host calls that use the variable `using`, or for all; raises their errors."""

    def leave(self) -> None:
        """Called after the last step; waits for other machines.

        Raises MachineLostError where one has failed, ValueError where only some had more data.
        """

    def fail(self) -> None:
        """Called when this process fails; tells the other machines, which wait for it."""

    def close(self) -> None:
        """Frees the steps, and writes pending events."""
        self.store.flush_summaries()
