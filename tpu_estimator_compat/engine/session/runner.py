"""The interface of a runtime to sessions and Keras models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.random_streams import RandomStreams


class Runner(Protocol):
    """Executes the steps of one plan for a session or a Keras model.

    Attributes:
      store: the variables by name. Reading one copies its value to the host, `assign` copies to the
        replicas. The plan's variables exist once the runner is made.
      streams: random streams that the session's other functions share; None where steps have
        their own.
      ended: whether no more steps can be made, even if this process has more data.
    """

    plan: StepPlan

    @property
    def store(self) -> VariableStore: ...

    @property
    def streams(self) -> RandomStreams | None: ...

    @property
    def ended(self) -> bool: ...

    @property
    def notes_before(self) -> bool:
        """Whether `run` notes the global step before its last step."""

    def start(self, restored: str | None = None) -> None:
        """Called before the first step; `restored`: the checkpoint that was restored, if any."""

    def begin_loop(self) -> None:
        """Resets the count of steps in a loop, by which host calls run every n-th step."""

    def run(self, iterator: Iterator, steps: int) -> LoopResult:
        """Makes up to `steps` steps of the plan; fewer at the end of the data, or after a NaN."""

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

    def can_collect(self, fetches: Sequence[tf.Tensor]) -> bool: ...

    def collect(
        self, iterator: Iterator, fetches: Sequence[tf.Tensor], most: int
    ) -> list[list[np.ndarray]]:
        """Evaluates `fetches` for up to `most` input elements in one call.

        The fetches, the same in every call, have a batch dimension. Returns a list of values per
        element, fewer than `most` at the end of the data.
        """

    def finish_host_calls(self, using: str | None = None) -> None:
        """Waits for host calls that use the variable `using`, or for all; raises their errors."""

    def leave(self) -> None:
        """Called after the last step; waits for other workers.

        Raises MachineLostError where one has failed, ValueError where only some had more data.
        """

    def fail(self) -> None:
        """Called when this process fails; tells the other workers, which wait for it."""

    def close(self) -> None:
        """Frees the steps, and writes pending events."""
