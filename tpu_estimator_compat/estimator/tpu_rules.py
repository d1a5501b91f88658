"""TPU rules: per-replica batches, loops, static shapes, TPU specs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.config import (
    IterationsPerLoopCounter,
    RunConfig,
    TPUConfig,
    check_positive_integer,
)
from tpu_estimator_compat.config.arguments import check_steps
from tpu_estimator_compat.engine import inputs
from tpu_estimator_compat.engine.capture.user_functions import (
    BATCH_SIZE_KEY,
    CONTEXT_KEY,
    USE_TPU_KEY,
    announced,
    call_model_fn,
    checked_spec,
    input_arguments,
)
from tpu_estimator_compat.engine.inputs import pipeline_configs
from tpu_estimator_compat.engine.inputs.input_mode import InputMode, Invocation, TPUInputMode
from tpu_estimator_compat.engine.inputs.tpu_context import TPUContext
from tpu_estimator_compat.engine.modes.captured_mode import model_arguments
from tpu_estimator_compat.engine.runtime import workers
from tpu_estimator_compat.engine.runtime.workers import Workers
from tpu_estimator_compat.engine.step.host_stage import HostStageBuilder
from tpu_estimator_compat.engine.topology import Topology
from tpu_estimator_compat.estimator.plain_rules import check_train_limits
from tpu_estimator_compat.estimator.rules import InputFn, ModelFn, copies
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, TPUEstimatorSpec


@dataclasses.dataclass(frozen=True)
class TPURules:
    """The `Rules` of `TPUEstimator`, for topologies with and without `tpu_semantics`.

    Attributes:
      batch_sizes: `ModeKeys` value to global batch size.
      batch_axis: per flat tensor of input, the dimension to split; None for 0 everywhere.
      make_host_stage: the result of `embedding.plug.host_stage`; None for no host stage.
    """

    model_fn: ModelFn
    params: Any
    config: RunConfig
    tpu_config: TPUConfig
    use_tpu: bool
    eval_on_tpu: bool
    batch_sizes: Mapping[str, int | None]
    batch_axis: Sequence[int] | None
    make_host_stage: Callable[[str, int | None, Workers | None], HostStageBuilder] | None = None

    resource_step: ClassVar[bool] = True

    def on_tpu(self, mode: str) -> bool:
        return self.use_tpu and (mode != ModeKeys.EVAL or self.eval_on_tpu)

    def check_train_limits(self, steps: int | None, max_steps: int | None) -> None:
        check_train_limits(steps, max_steps)
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

    def input_mode(self, mode: str, topology: Topology) -> InputMode:
        size, axis = self.batch_sizes[mode], self.batch_axis
        return pipeline_configs.choose(mode, self.tpu_config, topology, size, axis)

    def loop(self, topology: Topology) -> IterationsPerLoopCounter | None:
        return self.tpu_config.loop_length if topology.tpu_semantics else None

    def check_input(self, called: inputs.CalledInput, input_mode: InputMode) -> None:
        """Does not warn of endless predictions: neither does the original on TPU."""
        input_mode.check_called(called)

    def host_stage(
        self, input_mode: InputMode, check_shapes: bool, sharded: bool
    ) -> HostStageBuilder | None:
        if self.make_host_stage is None or not isinstance(input_mode, TPUInputMode):
            return None
        batch_size = input_mode.model_batch_size if check_shapes else None
        group = workers.of(input_mode.topology.strategy) if sharded else None
        return self.make_host_stage(input_mode.mode, batch_size, group)

    def partition(self, input_mode: InputMode, element_spec: Any) -> list[Any] | None:
        topology, dims = input_mode.topology, self.tpu_config.input_partition_dims
        if not topology.tpu_semantics or dims is None:
            return None
        features, labels = model_arguments(element_spec, input_mode.mode)
        cores = self.tpu_config.num_cores_per_replica
        found = inputs.partition_dims(features, labels, dims, cores)
        if not topology.splits_replicas:
            inputs.log_fallback(input_mode.mode)
        flat = tf.nest.flatten(element_spec, expand_composites=True)
        return found + [None] * (len(flat) - len(found))  # the padding mask is not split

    def input_arguments(
        self, input_fn: InputFn, input_mode: InputMode, call: Invocation
    ) -> dict[str, Any]:
        context = TPUContext(input_mode, call) if isinstance(input_mode, TPUInputMode) else None
        added = {BATCH_SIZE_KEY: input_mode.input_batch_size, CONTEXT_KEY: context}
        offered = {
            **copies(self.params, self.config, added),
            "mode": input_mode.mode,
            "input_context": inputs.context(input_mode.topology, call.host),
        }
        arguments = input_arguments(input_fn, offered)
        if "params" not in arguments:
            raise ValueError(
                f"input_fn ({input_fn}) does not include params argument, required by TPUEstimator "
                'to pass batch size as params["batch_size"]'
            )
        return arguments

    def call_model_fn(
        self, features: Any, labels: Any, input_mode: InputMode, check_shapes: bool
    ) -> EstimatorSpec | TPUEstimatorSpec:
        mode, size = input_mode.mode, input_mode.model_batch_size
        if not isinstance(input_mode, TPUInputMode):
            return self.call_for_export(features, labels, mode, size)
        if check_shapes:
            if features is not None:
                _check_static(features, "features")
            if labels is not None:
                _check_static(labels, "labels")
        context = TPUContext(input_mode)
        added = {BATCH_SIZE_KEY: size, USE_TPU_KEY: True, CONTEXT_KEY: context}
        spec = checked_spec(self._call(features, labels, mode, added))
        return _checked_tpu_spec(spec, mode, check_shapes)

    def call_for_export(
        self, features: Any, labels: Any, mode: str, batch_size: int | None = None
    ) -> EstimatorSpec:
        added = {BATCH_SIZE_KEY: batch_size, USE_TPU_KEY: False}
        with announced():
            spec = as_estimator_spec(self.call_off_tpu(features, labels, mode, added))
        return checked_spec(spec)

    def call_off_tpu(self, features: Any, labels: Any, mode: str, added: dict[str, Any]) -> Any:
        """The result of model_fn, called for CPU or GPU with `added` among its params."""
        logging.info("Running %s on CPU/GPU", mode)
        return self._call(features, labels, mode, added)

    def _call(self, features: Any, labels: Any, mode: str, added: dict[str, Any]) -> Any:
        offered = {"mode": mode, **copies(self.params, self.config, added)}
        return call_model_fn(self.model_fn, features, labels, offered)


def as_estimator_spec(spec: Any) -> Any:
    """The spec for CPU and GPU; calls the functions of a TPUEstimatorSpec."""
    return spec.as_estimator_spec() if isinstance(spec, TPUEstimatorSpec) else spec


def _check_static(tensors: Any, name: str) -> None:
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
