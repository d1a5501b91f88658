"""The rules of an estimator, as a value: what it allows, and what it gives to user functions."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import (
    IterationsPerLoopCounter,
    RunConfig,
    TPUConfig,
    check_positive_integer,
)
from tpu_estimator_compat.config.arguments import check_steps
from tpu_estimator_compat.engine.capture import user_functions
from tpu_estimator_compat.engine.capture.replica_context import across_replicas
from tpu_estimator_compat.engine.cluster import workers
from tpu_estimator_compat.engine.cluster.workers import Workers
from tpu_estimator_compat.engine.inputs import deployed_input, pipeline_configs
from tpu_estimator_compat.engine.inputs.calling import CalledInput, call_input_fn, warn_if_endless
from tpu_estimator_compat.engine.inputs.input_mode import InputMode, Invocation, TPUInputMode
from tpu_estimator_compat.engine.inputs.tpu_context import TPUContext
from tpu_estimator_compat.engine.step.host_stage import HostStageBuilder
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.engine.topology.tpu_strategy import TPUStrategy
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, TPUEstimatorSpec

ModelFn = Callable[..., Any]
InputFn = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules of an `Estimator`, or with a `tpu_config` those of a `TPUEstimator`.

    Attributes:
      params, config: user functions get deep copies.
      batch_sizes: `ModeKeys` value to global batch size.
      batch_axis: per flat tensor of input, the dimension to split; None for 0 everywhere.
      make_host_stage: the result of `embedding.capturing.host_stage`; None for no host stage.
    """

    model_fn: ModelFn
    params: Any
    config: RunConfig
    tpu_config: TPUConfig | None = None
    use_tpu: bool = False
    eval_on_tpu: bool = False
    batch_sizes: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    batch_axis: Sequence[int] | None = None
    make_host_stage: Callable[[str, int | None, Workers | None], HostStageBuilder] | None = None

    @property
    def resource_step(self) -> bool:
        """Whether the global step is a resource variable even with v1 behavior."""
        return self.tpu_config is not None

    def on_tpu(self, mode: str) -> bool:
        """Whether `mode` should run on TPU."""
        return self.use_tpu and (mode != ModeKeys.EVAL or self.eval_on_tpu)

    def check_train_limits(self, steps: int | None, max_steps: int | None) -> None:
        """Raises for limits that are impossible, or missing where required."""
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        check_steps(steps, "steps")
        check_steps(max_steps, "max_steps")
        if not self.use_tpu:
            return
        if steps is None and max_steps is None:
            raise ValueError(
                "For TPU training, one of `steps` or `max_steps` must be set. Cannot be both "
                "`None`."
            )
        if steps is not None:
            check_positive_integer(steps, "Train steps")
        if max_steps is not None:
            check_positive_integer(max_steps, "Train max_steps")

    def check_eval_steps(self, steps: int | None) -> None:
        if not self.on_tpu(ModeKeys.EVAL):
            check_steps(steps, "steps")
            return
        if steps is None:
            raise ValueError("Evaluate `steps` must be set on TPU. Cannot be `None`.")
        check_positive_integer(steps, "Eval steps")

    def loop(self, topology: Topology) -> IterationsPerLoopCounter | None:
        """The length of a loop, after which hooks are called; None if the hooks decide."""
        if self.tpu_config is not None:
            return self.tpu_config.loop_length if topology.tpu_semantics else None
        if isinstance(self.config.train_distribute, TPUStrategy):
            return IterationsPerLoopCounter(self.config.train_distribute.steps_per_run, "count")
        return None

    def input_mode(self, mode: str, topology: Topology) -> InputMode:
        """The input mode of `mode` on a topology, unchecked."""
        size = self.batch_sizes.get(mode)
        return pipeline_configs.choose(mode, self.tpu_config, topology, size, self.batch_axis)

    def call_input_fn(
        self, input_fn: InputFn, input_mode: InputMode, call: Invocation, store: Any
    ) -> CalledInput:
        """Calls input_fn; raises for a result that the rules forbid."""
        mode, added = input_mode.mode, {}
        if self.tpu_config is not None:
            context = TPUContext(input_mode, call) if isinstance(input_mode, TPUInputMode) else None
            added = {
                user_functions.BATCH_SIZE_KEY: input_mode.input_batch_size,
                user_functions.CONTEXT_KEY: context,
            }
        offered = {
            **self._offered(mode, added),
            "input_context": deployed_input.context(input_mode.topology, call.host),
        }
        arguments = user_functions.input_arguments(input_fn, offered)
        if self.tpu_config is not None and "params" not in arguments:
            raise ValueError(
                f"input_fn ({input_fn}) does not include params argument, required by TPUEstimator "
                'to pass batch size as params["batch_size"]'
            )
        with across_replicas(input_mode.topology.seen_strategy):
            called = call_input_fn(lambda: input_fn(**arguments), store)
        input_mode.check_called(called)
        if self.tpu_config is None and mode == ModeKeys.PREDICT:  # on TPU, nor did the original
            warn_if_endless(called)
        return called

    def host_stage(
        self, input_mode: InputMode, check_shapes: bool, sharded: bool
    ) -> HostStageBuilder | None:
        """The builder of a graph's host stage, made before the graph is captured; None for none."""
        if self.make_host_stage is None or not isinstance(input_mode, TPUInputMode):
            return None
        batch_size = input_mode.model_batch_size if check_shapes else None
        group = workers.of(input_mode.topology.strategy) if sharded else None
        return self.make_host_stage(input_mode.mode, batch_size, group)

    def call_model_fn(
        self, features: Any, labels: Any, input_mode: InputMode, check_shapes: bool
    ) -> EstimatorSpec | TPUEstimatorSpec:
        """Calls model_fn for a graph that replicas run."""
        mode, size = input_mode.mode, input_mode.model_batch_size
        if not isinstance(input_mode, TPUInputMode):
            return self.call_for_export(features, labels, mode, size)
        if check_shapes:
            _check_static(features, "features")
            _check_static(labels, "labels")
        added = {
            user_functions.BATCH_SIZE_KEY: size,
            user_functions.USE_TPU_KEY: True,
            user_functions.CONTEXT_KEY: TPUContext(input_mode),
        }
        spec = user_functions.checked_spec(self._call(features, labels, mode, added))
        return _checked_tpu_spec(spec, mode, check_shapes)

    def call_for_export(
        self, features: Any, labels: Any, mode: str, batch_size: int | None = None
    ) -> EstimatorSpec:
        """Calls model_fn for a graph that runs on one machine, on CPU or GPU."""
        if self.tpu_config is not None:
            sized = {user_functions.BATCH_SIZE_KEY: batch_size, user_functions.USE_TPU_KEY: False}
            with user_functions.announced():
                spec = as_estimator_spec(self.call_off_tpu(features, labels, mode, sized))
            return user_functions.checked_spec(spec)
        user_functions.check_takes_labels(self.model_fn, labels)
        with user_functions.announced():
            returned = self._call(features, labels, mode, {})
        spec = user_functions.checked_spec(returned)
        if isinstance(spec, TPUEstimatorSpec):
            raise ValueError(
                "model_fn should return an EstimatorSpec. Got a TPUEstimatorSpec: use "
                "TPUEstimator, or return spec.as_estimator_spec()."
            )
        return spec

    def call_off_tpu(self, features: Any, labels: Any, mode: str, added: dict[str, Any]) -> Any:
        """The result of model_fn, called for CPU or GPU with `added` among its params."""
        logging.info("Running %s on CPU/GPU", mode)
        return self._call(features, labels, mode, added)

    def _call(self, features: Any, labels: Any, mode: str, added: dict[str, Any]) -> Any:
        offered = self._offered(mode, added)
        return user_functions.call_model_fn(self.model_fn, features, labels, offered)

    def _offered(self, mode: str, added: dict[str, Any]) -> dict[str, Any]:
        """Arguments for user functions, with `added` among the params."""
        params = copy.deepcopy(self.params)
        for key, value in added.items():
            if value is not None:
                user_functions.set_param(params, key, value)
        return {"mode": mode, "params": params, "config": copy.deepcopy(self.config)}


def as_estimator_spec(spec: Any) -> Any:
    """The spec for CPU and GPU; calls the functions of a TPUEstimatorSpec."""
    return spec.as_estimator_spec() if isinstance(spec, TPUEstimatorSpec) else spec


def _check_static(tensors: Any, name: str) -> None:
    if tensors is None:
        return
    for tensor in tf.nest.flatten(tensors, expand_composites=True):
        if not tensor.shape.is_fully_defined():
            raise ValueError(
                f"The {name} to the model returned by input_fn must have static shape. Tensor: "
                f"{tensor}. Batch with drop_remainder=True, and set the shapes of what was parsed."
            )


def _checked_tpu_spec(
    spec: EstimatorSpec | TPUEstimatorSpec, mode: str, check_shapes: bool
) -> EstimatorSpec | TPUEstimatorSpec:
    if isinstance(spec, TPUEstimatorSpec):
        if mode == ModeKeys.PREDICT and check_shapes:
            _check_predictions(spec.predictions)
        return spec
    if mode == ModeKeys.TRAIN:
        if spec.training_chief_hooks:
            raise ValueError(
                "training_chief_hooks returned by EstimatorSpec is not supported in TPUEstimator. "
                "If you want to pass training hooks, please pass via training_hooks."
            )
        return spec
    action = "evaluation" if mode == ModeKeys.EVAL else "prediction"
    raise RuntimeError(
        f"estimator_spec used by TPU {action} must have type `TPUEstimatorSpec`. Got {type(spec)}"
    )


def _check_predictions(predictions: Any) -> None:
    if not isinstance(predictions, dict):
        raise TypeError("TPUEstimatorSpec.predictions must be dict of Tensors.")
    for name, tensor in predictions.items():
        if not tensor.shape.rank or tensor.shape[0] is None:
            raise ValueError(
                f"The tensor with key ({name}) in TPUEstimatorSpec.predictions has dynamic shape "
                f"(should be static). Tensor: {tensor}"
            )
