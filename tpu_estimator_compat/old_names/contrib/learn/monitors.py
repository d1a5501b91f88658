"""`tf.contrib.learn.monitors`: monitors, and their conversion to hooks."""

from __future__ import annotations

import copy
import inspect
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.engine.checkpoint.state import latest
from tpu_estimator_compat.estimator import NanLossDuringTrainingError

Hook = Any  # a tf.train.SessionRunHook


class BaseMonitor:
    """Base class of monitors: objects that are called in every step."""

    def __init__(self) -> None:
        self._begun = False
        self._current_step: int | None = None
        self._max_steps: int | None = None
        self._estimator: Any = None

    @property
    def run_on_all_workers(self) -> bool:
        """Whether workers other than the chief call the monitor too."""
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
        """Called before the global step becomes `step`; returns tensors for `step_end`."""
        if step < 0 or (self._max_steps is not None and step > self._max_steps):
            raise ValueError(f"Invalid step {step}.")
        self._current_step = step
        return []

    def step_end(self, step: int, output: dict[Any, Any]) -> bool:
        """Called after a step with the requested values; returns whether to stop."""
        del output
        if self._current_step != step:
            raise ValueError(f"step_end expected {self._current_step} but got {step}.")
        self._current_step = None
        return False

    def post_step(self, step: int, session: Any) -> None:
        """Called after all monitors' `step_end`; may run other tensors in the session."""


class EveryN(BaseMonitor):
    """Base class of monitors that act every n steps, and in the first `first_n_steps`.

    Overrides of `BaseMonitor`'s methods must call the overridden ones.
    """

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1):
        super().__init__()
        self._every_n_steps = every_n_steps
        self._first_n_steps = first_n_steps
        self._last_successful_step: int | None = None
        self._last_active_step = 0
        self._every_n_step_begin_called = False

    def every_n_step_begin(self, step: int) -> list[Any]:
        del step
        return []

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        del step, outputs
        return False

    def every_n_post_step(self, step: int, session: Any) -> None:
        """`post_step` for steps in which the monitor acts, and for the last step."""

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


class ValidationMonitor(EveryN):
    """Evaluates new checkpoints during training, and may stop it early.

    `x`, `y`, `batch_size` and `metrics` must be None: they were for another kind of estimator.
    Training stops after `early_stopping_rounds` steps without improvement; None for never. The
    monitor looks for a checkpoint every `every_n_steps` steps, and at least `check_interval_secs`
    apart.
    """

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Any = None,
        hooks: Sequence[Hook] | None = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
        check_interval_secs: float | None = 5,
    ):
        super().__init__(every_n_steps=every_n_steps, first_n_steps=-1)
        if x is None and input_fn is None:
            raise ValueError("Either x or input_fn should be provided.")
        self._of_learn = (x, y, batch_size, metrics)
        self.input_fn = input_fn
        self.eval_steps = eval_steps
        self.hooks = hooks
        self.early_stopping_rounds = early_stopping_rounds
        self.early_stopping_metric = early_stopping_metric
        self.early_stopping_metric_minimize = early_stopping_metric_minimize
        self.name = name
        self.check_interval_secs = check_interval_secs
        self._last_look = -math.inf
        self.early_stopped = False
        self.best_step: int | None = None
        self.best_value: Any = None
        self.best_metrics: dict[str, Any] | None = None
        self._latest_path: str | None = None

    def every_n_step_end(self, step: int, outputs: dict[Any, Any]) -> bool:
        super().every_n_step_end(step, outputs)
        if self._estimator is None:
            raise ValueError("Missing call to set_estimator.")
        if not self._is_due():
            return False
        path = latest(self._estimator.model_dir)
        if path is None or path == self._latest_path:
            tf.logging.debug("Skipping evaluation at step %d: no new checkpoint.", step)
            return False
        self._latest_path = path
        results = self._evaluate()
        shown = ", ".join(f"{name} = {value!s}" for name, value in results.items())
        tf.logging.info("Validation (step %d): %s", step, shown)
        return self.early_stopping_rounds is not None and self._is_enough(step, results)

    def _is_due(self) -> bool:
        """Whether to look for a checkpoint now; records the time if so."""
        now, least = time.time(), self.check_interval_secs
        if least is not None and now - self._last_look < least:
            return False
        self._last_look = now
        return True

    def _evaluate(self) -> dict[str, Any]:
        if any(value is not None for value in self._of_learn):
            raise ValueError(
                "tf.estimator.Estimator does not support following arguments: x, y, batch_size, "
                "metrics. Should set as `None` in ValidationMonitor"
            )
        return self._estimator.evaluate(
            input_fn=self.input_fn, steps=self.eval_steps, hooks=self.hooks, name=self.name
        )

    def _is_enough(self, step: int, results: dict[str, Any]) -> bool:
        metric = self.early_stopping_metric
        if metric not in results:
            raise ValueError(f"Metric {metric} missing from outputs {set(results)}.")
        value, best = results[metric], self.best_value
        better = best is None or (
            value < best if self.early_stopping_metric_minimize else value > best
        )
        if better:
            self.best_step, self.best_value = step, value
            self.best_metrics = copy.deepcopy(results)
        assert self.best_step is not None
        assert self.early_stopping_rounds is not None
        if step - self.best_step < self.early_stopping_rounds:
            return False
        tf.logging.info(
            "Stopping. Best step: %s with %s = %s.", self.best_step, metric, self.best_value
        )
        self.early_stopped = True
        return True


class RunHookAdapterForMonitors(tf.train.SessionRunHook):
    def __init__(self, monitors: Sequence[BaseMonitor]):
        self._monitors = monitors

    def begin(self) -> None:
        self._last_step: int | None = None
        self._global_step = tf.train.get_global_step()
        for monitor in self._monitors:
            monitor.begin(max_steps=None)

    def before_run(self, run_context: Any) -> tf.train.SessionRunArgs:
        if self._last_step is None:
            self._last_step = run_context.session.run(self._global_step) + 1
        wanted = {}
        for monitor in self._monitors:
            requests = monitor.step_begin(self._last_step)
            if requests and not isinstance(requests, list):
                raise ValueError("Monitor.step_begin should return a list.")
            wanted.update({request: _as_graph_element(request) for request in requests or []})
        return tf.train.SessionRunArgs(wanted)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step = self._last_step
        assert step is not None
        for monitor in self._monitors:
            if monitor.step_end(step, run_values.results or {}):
                run_context.request_stop()
        for monitor in self._monitors:
            monitor.post_step(step, run_context.session)
        # A variable's value that a step fetches may be from before its update.
        self._last_step = run_context.session.run(self._global_step) + 1

    def end(self, session: Any) -> None:
        self._last_step = None
        for monitor in self._monitors:
            takes_session = "session" in inspect.signature(monitor.end).parameters
            monitor.end(**({"session": session} if takes_session else {}))


def _as_graph_element(request: Any) -> Any:
    graph = tf.get_default_graph()
    if not isinstance(request, str):
        if getattr(request, "graph", None) is not graph:
            raise ValueError(
                f"Passed {request} should have graph attribute that is equal to current graph "
                f"{graph}."
            )
        return request
    if ":" in request:
        return graph.as_graph_element(request)
    outputs = graph.get_operation_by_name(request).outputs
    if len(outputs) > 1:
        raise ValueError(
            f"Name {request} is ambiguous, as this `Operation` has multiple outputs (at least 2)."
        )
    return graph.as_graph_element(f"{request}:0")


def replace_monitors_with_hooks(
    monitors_or_hooks: Sequence[Any] | None, estimator: Any
) -> list[Hook]:
    """Returns the hooks, and a hook that calls the monitors.

    On workers other than the chief, only monitors that run on all workers are kept.
    """
    given = monitors_or_hooks or []
    hooks = [each for each in given if isinstance(each, tf.train.SessionRunHook)]
    monitors = [each for each in given if not isinstance(each, tf.train.SessionRunHook)]
    if not estimator.config.is_chief:
        monitors = [monitor for monitor in monitors if monitor.run_on_all_workers]
    for monitor in monitors:
        monitor.set_estimator(estimator)
    return [*hooks, RunHookAdapterForMonitors(monitors)] if monitors else hooks


__all__ = [
    "BaseMonitor",
    "EveryN",
    "NanLossDuringTrainingError",
    "RunHookAdapterForMonitors",
    "ValidationMonitor",
    "replace_monitors_with_hooks",
]
