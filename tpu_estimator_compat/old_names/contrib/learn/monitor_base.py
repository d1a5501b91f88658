"""The base classes of monitors of `tf.contrib.learn`: called in every step, or every n-th."""

from __future__ import annotations

from typing import Any


class BaseMonitor:
    """Is told of every step. Base class of monitors, to override what one wants to be told of."""

    def __init__(self) -> None:
        self._begun = False
        self._current_step: int | None = None
        self._max_steps: int | None = None
        self._estimator: Any = None

    @property
    def run_on_all_workers(self) -> bool:
        """Whether others than the chief run it too."""
        return False

    def set_estimator(self, estimator: Any) -> None:
        """Names the estimator that is trained.

        Raises:
          ValueError: it is None.
        """
        if estimator is None:
            raise ValueError("Missing estimator.")
        self._estimator = estimator

    def begin(self, max_steps: int | None = None) -> None:
        """Called before training.

        Raises:
          ValueError: called twice.
        """
        if self._begun:
            raise ValueError("begin called twice without end.")
        self._max_steps = max_steps
        self._begun = True

    def end(self, session: Any = None) -> None:
        """Called after training.

        Raises:
          ValueError: nothing has begun.
        """
        del session
        if not self._begun:
            raise ValueError("end called without begin.")
        self._max_steps = None
        self._begun = False

    def step_begin(self, step: int) -> list[Any]:
        """Called before a step.

        Args:
          step: the global step that it leads to.

        Returns:
          Tensors, or their names, whose values `step_end` is to get.

        Raises:
          ValueError: the step is out of range.
        """
        if step < 0 or (self._max_steps is not None and step > self._max_steps):
            raise ValueError(f"Invalid step {step}.")
        self._current_step = step
        return []

    def step_end(self, step: int, output: dict[Any, Any]) -> bool:
        """Called after a step.

        Args:
          step: as in `step_begin`.
          output: the values of what `step_begin` asked for, by what it returned.

        Returns:
          Whether to stop.

        Raises:
          ValueError: another step has begun.
        """
        del output
        if self._current_step != step:
            raise ValueError(f"step_end expected {self._current_step} but got {step}.")
        self._current_step = None
        return False

    def post_step(self, step: int, session: Any) -> None:
        """Called after all `step_end`, with the session.

        Args:
          step: as in `step_begin`.
          session: may run other things.
        """


class EveryN(BaseMonitor):
    """Is told of every nth step, by methods of its own; base class of monitors.

    Args:
      every_n_steps: the number of steps between two calls.
      first_n_steps: of how many global steps at the beginning it is told in any case.
    """

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1):
        super().__init__()
        self._every_n_steps = every_n_steps
        self._first_n_steps = first_n_steps
        self._last_successful_step: int | None = None
        self._last_active_step = 0
        self._every_n_step_begin_called = False

    def every_n_step_begin(self, step: int) -> list[Any]:
        """As `step_begin`."""
        del step
        return []

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """As `step_end`."""
        del step, outputs
        return False

    def every_n_post_step(self, step: int, session: Any) -> None:
        """As `post_step`; also called at the end, if the last step was none of the nth."""

    def step_begin(self, step: int) -> list[Any]:
        """As in the base class; overriding methods must call it."""
        super().step_begin(step)
        due = step >= self._every_n_steps + self._last_active_step
        self._every_n_step_begin_called = (
            step <= self._first_n_steps or due or step == self._max_steps
        )
        return self.every_n_step_begin(step) if self._every_n_step_begin_called else []

    def step_end(self, step: int, output: dict[Any, Any]) -> bool:
        """As in the base class; overriding methods must call it."""
        super().step_end(step, output)
        return self._every_n_step_begin_called and self.every_n_step_end(step, output)

    def post_step(self, step: int, session: Any) -> None:
        """As in the base class; overriding methods must call it."""
        super().post_step(step, session)
        if self._every_n_step_begin_called:
            self.every_n_post_step(step, session)
            self._last_active_step = step
        self._last_successful_step = step

    def end(self, session: Any = None) -> None:
        """As in the base class; overriding methods must call it."""
        super().end(session=session)
        last = self._last_successful_step
        if last is not None and last != self._last_active_step:
            self.every_n_post_step(last, session)
