"""The interface of a runtime: the seam between sessions and whatever runs their steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.plan import StepPlan


class Runner(Protocol):
    """Runs the steps of one plan; TF's session and Keras stand on it.

    Attributes:
      plan: the computation of a step.
      store: the variables by name: reading one brings its value to the host, `assign` takes it to
        the replicas. Those of the plan exist once the runner is made.
      ended: whether no step can be made any more, although nobody has met the end of the data.
    """

    plan: StepPlan

    @property
    def store(self) -> VariableStore: ...

    @property
    def ended(self) -> bool: ...

    @property
    def notes_before(self) -> bool:
        """Whether `run` notes the global step before its last step."""
        ...

    def start(self, restored: str | None = None) -> None:
        """Called once when all variables have their first values, before any step.

        Args:
          restored: the checkpoint that has them; None where initialisers have made them.

        Raises:
          The reason why steps cannot run, such as other workers with other graphs.
        """
        ...

    def begin_loop(self) -> None:
        """Counts the steps of a loop from 0: host calls run in every n-th step."""
        ...

    def run(self, iterator: Iterator, steps: int) -> LoopResult:
        """Makes up to `steps` steps of the plan; fewer at the end of the data, or after a NaN.

        Args:
          iterator: gives the elements.
          steps: the number of steps.

        Raises:
          tf.errors.OpError: what a step or a host call raised, the end of the data excepted.
        """
        ...

    def run_once(
        self,
        iterator: Iterator,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]] = (),
    ) -> list[Any]:
        """Makes one step that computes something else of the plan's graph.

        Args:
          iterator: gives the element.
          fetches: tensors of the graph.
          targets: operations of the graph.
          feeds: values in place of tensors.

        Returns:
          The values of `fetches`, as a TF1 session returned them.

        Raises:
          tf.errors.OutOfRangeError: the data has ended.
          tf.errors.OpError: what the step raised.
        """
        ...

    def can_collect(self, fetches: Sequence[tf.Tensor]) -> bool:
        """Whether `collect` can serve `fetches`."""
        ...

    def collect(
        self, iterator: Iterator, fetches: Sequence[tf.Tensor], most: int
    ) -> list[list[np.ndarray]]:
        """Evaluates `fetches` for up to `most` input elements in one call.

        Args:
          iterator: gives the elements.
          fetches: tensors of the graph, the same in every call, each with a batch dimension.
          most: the number of elements.

        Returns:
          One list of values per element; fewer than `most` at the end of the data.
        """
        ...

    def finish_host_calls(self, using: str | None = None) -> None:
        """Waits until the host calls of all steps are made.

        Args:
          using: only if they use the variable of this name.

        Raises:
          tf.errors.OpError: what a call raised.
        """
        ...

    def leave(self) -> None:
        """Called when the last step is made; waits for other workers, where there are some.

        Raises:
          MachineLostError: another worker has failed.
          ValueError: the data of some workers ended while others had more.
        """
        ...

    def fail(self) -> None:
        """Called when this process has failed; tells other workers, which wait for it."""
        ...

    def close(self) -> None:
        """Frees the steps, and writes the events that wait."""
        ...
