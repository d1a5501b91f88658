"""A spec's functions for the host: `scaffold_fn`, `metric_fn`, the function of `host_call`."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph.graph_ops import as_operation
from tpu_estimator_compat.engine.step.host_placeholders import HostPlaceholders
from tpu_estimator_compat.spec.mode_spec import ModeSpec


class SpecFunctions:
    """The results of a spec's functions, each called once: in `call`, or at first use.

    They are called in the captured graph, on `host`'s placeholders for tensors of all replicas.
    """

    def __init__(self, spec: ModeSpec, host: HostPlaceholders):
        self._spec = spec
        self.host = host

    def call(self, *, evaluates: bool) -> None:
        """Calls the functions of a mode in the original's order."""
        _ = self.scaffold
        if evaluates:
            _ = self.metrics
        _ = self.host_calls

    @functools.cached_property
    def scaffold(self) -> tf.compat.v1.train.Scaffold:
        return self._spec.make_scaffold()

    @functools.cached_property
    def metrics(self) -> dict[str, Any]:
        """Name to `(value, update_op)` or Keras metric."""
        metrics: Any = self._spec.metrics
        if self._spec.eval_metrics is not None:
            metrics = self.host.call("eval_metrics", self._spec.eval_metrics)
        if not isinstance(metrics, dict):
            raise TypeError(f"metric_fn must return a dict of metrics, given: {metrics!r}")
        return metrics

    @functools.cached_property
    def host_calls(self) -> list[tf.Operation]:
        """The ops that the function of `host_call` returned."""
        if self._spec.host_call is None:
            return []
        returned = self.host.call("host_call", self._spec.host_call)
        return [as_operation(x) for x in tf.nest.flatten(returned) if x is not None]
