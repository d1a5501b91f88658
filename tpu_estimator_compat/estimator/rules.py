"""`Rules`: the methods in which `Estimator` and `TPUEstimator` differ.

`Estimator` has `PlainRules`, `TPUEstimator` has `TPURules`; `preparation` calls them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Protocol

from tpu_estimator_compat.config import IterationsPerLoopCounter, RunConfig
from tpu_estimator_compat.engine import inputs
from tpu_estimator_compat.engine.capture.user_functions import set_param
from tpu_estimator_compat.engine.inputs.input_mode import InputMode, Invocation
from tpu_estimator_compat.engine.step.host_stage import HostStageBuilder
from tpu_estimator_compat.engine.topology import Topology
from tpu_estimator_compat.spec import EstimatorSpec, TPUEstimatorSpec

ModelFn = Callable[..., Any]
InputFn = Callable[..., Any]


class Rules(Protocol):
    """The interface of an estimator's rules."""

    @property
    def config(self) -> RunConfig:
        """The run configuration; user functions get deep copies."""

    @property
    def resource_step(self) -> bool:
        """Whether the global step is a resource variable even with v1 behavior."""

    def on_tpu(self, mode: str) -> bool:
        """Whether `mode` should run on TPU."""

    def check_train_limits(self, steps: int | None, max_steps: int | None) -> None:
        """Raises for limits that are impossible, or missing where required."""

    def check_eval_steps(self, steps: int | None) -> None: ...

    def loop(self, topology: Topology) -> IterationsPerLoopCounter | None:
        """The length of a loop, after which hooks are called; None if the hooks decide."""

    def input_mode(self, mode: str, topology: Topology) -> InputMode:
        """The input mode of `mode` on a topology, unchecked."""

    def input_arguments(
        self, input_fn: InputFn, input_mode: InputMode, call: Invocation
    ) -> dict[str, Any]:
        """The arguments of a call of input_fn."""

    def check_input(self, called: inputs.CalledInput, input_mode: InputMode) -> None:
        """Raises for results of input_fn that the rules forbid."""

    def partition(self, input_mode: InputMode, element_spec: Any) -> list[Any] | None:
        """Splits of a replica's input over its cores, one entry per tensor; None for no split."""

    def host_stage(
        self, input_mode: InputMode, check_shapes: bool, sharded: bool
    ) -> HostStageBuilder | None:
        """The builder of a graph's host stage, made before the graph is captured; None for none."""

    def call_model_fn(
        self, features: Any, labels: Any, input_mode: InputMode, check_shapes: bool
    ) -> EstimatorSpec | TPUEstimatorSpec:
        """Calls model_fn for a graph that replicas run."""

    def call_for_export(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        """Calls model_fn for a graph that runs on one machine."""


def copies(params: Any, config: RunConfig, added: dict[str, Any] | None = None) -> dict[str, Any]:
    """Deep copies of `params`, updated by `added`, and of `config`."""
    copied = {"params": copy.deepcopy(params), "config": copy.deepcopy(config)}
    for key, value in (added or {}).items():
        if value is not None:
            set_param(copied["params"], key, value)
    return copied
