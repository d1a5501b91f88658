"""The rules of `Estimator`: users choose batch sizes, loops and specs."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from tpu_estimator_compat.config import IterationsPerLoopCounter, RunConfig
from tpu_estimator_compat.config.arguments import check_steps
from tpu_estimator_compat.engine import inputs
from tpu_estimator_compat.engine.capture.user_functions import (
    announced,
    call_model_fn,
    check_takes_labels,
    checked_spec,
    input_arguments,
)
from tpu_estimator_compat.engine.inputs import pipeline_configs
from tpu_estimator_compat.engine.inputs.input_mode import InputMode, Invocation
from tpu_estimator_compat.engine.topology import Topology, TPUStrategy
from tpu_estimator_compat.estimator.rules import InputFn, ModelFn, copies
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, TPUEstimatorSpec


@dataclasses.dataclass(frozen=True)
class PlainRules:
    model_fn: ModelFn
    params: Any
    config: RunConfig

    resource_step: ClassVar[bool] = False

    def on_tpu(self, mode: str) -> bool:
        return False

    def check_train_limits(self, steps: int | None, max_steps: int | None) -> None:
        check_train_limits(steps, max_steps)

    def check_eval_steps(self, steps: int | None) -> None:
        check_steps(steps, "steps")

    def loop(self, topology: Topology) -> IterationsPerLoopCounter | None:
        if isinstance(self.config.train_distribute, TPUStrategy):
            return IterationsPerLoopCounter(self.config.train_distribute.steps_per_run, "count")
        return None

    def input_mode(self, mode: str, topology: Topology) -> InputMode:
        return pipeline_configs.choose(mode, None, topology)

    def input_arguments(
        self, input_fn: InputFn, input_mode: InputMode, call: Invocation
    ) -> dict[str, Any]:
        offered = {
            "mode": input_mode.mode,
            **copies(self.params, self.config),
            "input_context": inputs.context(input_mode.topology, call.host),
        }
        return input_arguments(input_fn, offered)

    def check_input(self, called: inputs.CalledInput, input_mode: InputMode) -> None:
        """Also warns of endless predictions."""
        input_mode.check_called(called)
        if input_mode.mode == ModeKeys.PREDICT:
            inputs.warn_if_endless(called)

    def partition(self, input_mode: InputMode, element_spec: Any) -> None:
        """None: no input is split."""

    def host_stage(self, input_mode: InputMode, check_shapes: bool, sharded: bool) -> None:
        """None: there are no embedding tables."""

    def call_model_fn(
        self, features: Any, labels: Any, input_mode: InputMode, check_shapes: bool
    ) -> EstimatorSpec:
        return self.call_for_export(features, labels, input_mode.mode)

    def call_for_export(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        """Calls model_fn; raises ValueError if it returns a TPUEstimatorSpec."""
        offered = {"mode": mode, **copies(self.params, self.config)}
        check_takes_labels(self.model_fn, labels)
        with announced():
            returned = call_model_fn(self.model_fn, features, labels, offered)
        spec = checked_spec(returned)
        if isinstance(spec, TPUEstimatorSpec):
            raise ValueError(
                "model_fn should return an EstimatorSpec. Got a TPUEstimatorSpec: use "
                "TPUEstimator, or return spec.as_estimator_spec()."
            )
        return spec


def check_train_limits(steps: int | None, max_steps: int | None) -> None:
    if steps is not None and max_steps is not None:
        raise ValueError("Can not provide both steps and max_steps.")
    check_steps(steps, "steps")
    check_steps(max_steps, "max_steps")
