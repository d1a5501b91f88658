"""The base classes of monitors of `tf.contrib.learn`: called in every step, or every n-th."""

from __future__ import annotations

from typing import Any


class BaseMonitor:
    """Base class of monitors, whose methods are called in every step."""

    def __init__(self) -> None:
        self._begun = False
        self._current_step: int | None = None
        self._max_steps: int | None = None
        self._estimator: Any = None

    @property
    def run_on_all_workers(self) -> bool:
        """Whether workers other than the chief run it too."""
        return False

    def set_estimator(self, estimator: Any) -> None:
        if estimator is None:
            raise ValueError("Missing estimator.")
        self._estimator = estimator

    def begin(self, max_steps: int | None = None) -> None:
        if self._begun:
            raise ValueError("begin called twice without end.")
        self._max_steps = max_steps
        self._begun = True

    def end(self, session: Any = None) -> None:
        del session
        if not self._begun:
            raise ValueError("end called without begin.")
        self._max_steps = None
        self._begun = False

    def step_begin(self, step: int) -> list[Any]:
        """Called before the step that leads to global step `step`.

        Returns tensors, or their names, whose values `step_end` is to get.
        """
        if step < 0 or (self._max_steps is not None and step > self._max_steps):
            raise ValueError(f"Invalid step {step}.")
        self._current_step = step
        return []

    def step_end(self, step: int, output: dict[Any, Any]) -> bool:
        """Called after a step with the values of requests; returns whether to stop."""
        del output
        if self._current_step != step:
            raise ValueError(f"step_end expected {self._current_step} but got {step}.")
        self._current_step = None
        return False

    def post_step(self, step: int, session: Any) -> None:
        """Called after `step_end` of all monitors; may run other things in the session."""


class EveryN(BaseMonitor):
    """Base class of monitors that act in every n-th step, and in the first `first_n_steps`.

    Methods that override those of `BaseMonitor` must call them.
    """

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1):
        super().__init__()
        self._every_n_steps = every_n_steps
        self._first_n_steps = first_n_steps
        self._last_successful_step: int | None = None
        self._last_active_step = 0
        self._every_n_step_begin_called = False

    def every_n_step_begin(self, step: int) -> list[Any]:
        """`step_begin` of the n-th steps."""
        del step
        return []

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        """`step_end` of the n-th steps."""
        del step, outputs
        return False

    def every_n_post_step(self, step: int, session: Any) -> None:
        """`post_step` of the n-th steps, and of the last one."""

    def step_begin(self, step: int) -> list[Any]:
        super().step_begin(step)
        due = step >= self._every_n_steps + self._last_active_step
        self._every_n_step_begin_called = (
            step <= self._first_n_steps or due or step == self._max_steps
        )
        return self.every_n_step_begin(step) if self._every_n_step_begin_called else []

    def step_end(self, step: int, output: dict[Any, Any]) -> bool:
        super().step_end(step, output)
        return self._every_n_step_begin_called and self.every_n_step_end(step, output)

    def post_step(self, step: int, session: Any) -> None:
        super().post_step(step, session)
        if self._every_n_step_begin_called:
            self.every_n_post_step(step, session)
            self._last_active_step = step
        self._last_successful_step = step

    def end(self, session: Any = None) -> None:
        super().end(session=session)
        last = self._last_successful_step
        if last is not None and last != self._last_active_step:
            self.every_n_post_step(last, session)
