"""`tf.contrib.learn.monitors`: monitors, and the function that makes hooks of them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.estimator import NanLossDuringTrainingError
from tpu_estimator_compat.old_names.contrib.learn.monitor_base import BaseMonitor, EveryN
from tpu_estimator_compat.old_names.contrib.learn.validation_monitor import ValidationMonitor

Hook = Any  # a tf.train.SessionRunHook


class RunHookAdapterForMonitors(tf.train.SessionRunHook):
    """The hook that calls monitors, one after the other."""

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
        # What a step itself fetches of a variable may be of before it.
        self._last_step = run_context.session.run(self._global_step) + 1

    def end(self, session: Any) -> None:
        self._last_step = None
        for monitor in self._monitors:
            takes_session = "session" in inspect.signature(monitor.end).parameters
            monitor.end(**({"session": session} if takes_session else {}))


def _as_graph_element(request: Any) -> Any:
    """The tensor or operation of the default graph that a monitor asks for."""
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
    """The hooks among them, and one that calls the monitors.

    Workers other than the chief have only monitors that run on all workers.
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
