"""TPU graphs: a computation inside `tpu.rewrite`, and a call that picks a core for each request.

Any machine can write such a graph; only a TPU can run it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tpu_estimator_compat.engine.capture.user_functions import declared_arguments
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, TPUEstimatorSpec
from tpu_estimator_compat.tf_internals import (
    ClassificationOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
    tpu_ops,
)

# Defun, not tf.function: its body uses the graph's variables, and makes new ones there.
from tpu_estimator_compat.tf_internals import framework_function as function
from tpu_estimator_compat.tf_internals import tpu_functional as functional
from tpu_estimator_compat.tf_internals import tpu_lib as tpu

Spec = EstimatorSpec | TPUEstimatorSpec
Tensors = list[Any]


class BatchConfig(NamedTuple):
    """The batching of requests before they go to a core.

    Attributes:
      num_batch_threads: threads that form batches; as many batches are processed at once.
      max_batch_size: examples in a batch, at most.
      batch_timeout_micros: microseconds to wait for a batch to fill up.
      allowed_batch_sizes: ascending sizes to which batches are padded, the last one
        `max_batch_size`; None or empty for any.
      max_enqueued_batches: batches that may wait.

    Example:
      >>> BatchConfig(1, 8, 5000, allowed_batch_sizes=[4, 8]).max_batch_size
      8
    """

    num_batch_threads: int
    max_batch_size: int
    batch_timeout_micros: int
    allowed_batch_sizes: Sequence[int] | None
    max_enqueued_batches: int = 100


@contextlib.contextmanager
def inference_context() -> Iterator[None]:
    """The control flow context in which the original built graphs for serving on TPU."""
    context = tpu._TPUInferenceContext("tpu_inference", check_ops=False)
    context.Enter()
    try:
        yield
    finally:
        context.Exit()


def inference_on_tpu(
    computation: Callable[..., Any],
    inputs_to_tpu: Sequence[tf.Tensor],
    num_batch_threads: int,
    max_batch_size: int | None,
    batch_timeout_micros: int,
    allowed_batch_sizes: Sequence[int] | None = None,
    max_enqueued_batches: int = 100,
) -> Tensors:
    """Puts a computation on TPU, for a model_fn that is exported with API version 2.

    Args:
      computation: takes the tensors of `inputs_to_tpu`, returns a list of tensors.
      inputs_to_tpu: inputs of `computation`, batched along dimension 0.
      max_batch_size: as in `BatchConfig`; None or 0 for no batching.
      num_batch_threads, batch_timeout_micros, allowed_batch_sizes, max_enqueued_batches: as in
        `BatchConfig`.

    Returns:
      The outputs, on the host.
    """

    def call(inputs: Any) -> Tensors:
        return _partitioned_call(lambda: _rewritten(computation, inputs))

    if not max_batch_size:
        return call(inputs_to_tpu)
    config = BatchConfig(
        num_batch_threads,
        max_batch_size,
        batch_timeout_micros,
        allowed_batch_sizes,
        max_enqueued_batches,
    )
    return _batched(call, inputs_to_tpu, config)


def model_fn_inference_on_tpu(
    model_fn: Callable[..., Spec],
    features: Any,
    labels: Any = None,
    config: Any = None,
    params: Any = None,
    batch_config: BatchConfig | None = None,
) -> Spec:
    """Puts a whole model_fn on TPU, for a model_fn that is exported with API version 2.

    Args:
      model_fn: called in PREDICT mode, with the arguments below that it declares.
      features: model_fn's features: a dense tensor, or a nested structure of dense tensors.
      labels, config, params: model_fn's own.
      batch_config: the batching of requests; None for none.

    Returns:
      model_fn's spec, with predictions and export_outputs on the host.

    Raises:
      ValueError: an export output that is neither a prediction, a classification nor a regression.
    """
    offered = {"labels": labels, "mode": ModeKeys.PREDICT, "config": config, "params": params}

    def call(features: Any) -> Spec:
        return model_fn(features, **declared_arguments(model_fn, offered))

    return spec_on_tpu(call, features, batch_config)


def spec_on_tpu(
    call_model_fn: Callable[[Any], Spec], features: Any, batch_config: BatchConfig | None = None
) -> Spec:
    """The spec of a model built on TPU, with predictions and export_outputs on the host.

    `call_model_fn` takes the features, returns a spec of PREDICT, and is called once.
    """
    built: list[tuple[Spec, Any]] = []

    def build(features: Any) -> Tensors:
        spec = call_model_fn(features)
        results = (
            spec.predictions,
            {name: _tensors_of(output) for name, output in spec.export_outputs.items()},
        )
        built.append((spec, results))
        return [t for t in tf.nest.flatten(results) if t is not None]

    def call(features: Any) -> Tensors:
        return _partitioned_call(lambda: _rewritten(lambda: build(features)))

    on_host = iter(_batched(call, features, batch_config) if batch_config else call(features))
    [(spec, results)] = built
    replaced = [None if t is None else next(on_host) for t in tf.nest.flatten(results)]
    predictions, outputs = tf.nest.pack_sequence_as(results, replaced)
    rebuilt = {k: _rebuilt(spec.export_outputs[k], tensors) for k, tensors in outputs.items()}
    return spec._replace(predictions=predictions, export_outputs=rebuilt)


def _rewritten(computation: Callable[..., Any], inputs: Any = None) -> Tensors:
    outputs = tf.compat.v1.tpu.rewrite(computation, inputs)
    tpu.prune_unconnected_ops_from_xla(tf.compat.v1.get_default_graph())
    return outputs


def _partitioned_call(body: Callable[[], Tensors]) -> Tensors:
    """Calls `body` as a function, each time on the next core."""

    # By reference, so that a core may cache variables, which do not change.
    @function.Defun(capture_resource_var_by_value=False)
    def tpu_subgraph():
        return body()

    return functional.TPUPartitionedCall(
        args=tpu_subgraph.captured_inputs,  # builds the body
        device_ordinal=tpu_ops.tpu_ordinal_selector(),
        Tout=[output.type for output in tpu_subgraph.definition.signature.output_arg],
        f=tpu_subgraph,
    )


def _batched(call: Callable[[Any], Tensors], inputs: Any, config: BatchConfig) -> Tensors:
    """`call(inputs)` on the inputs of several requests together."""

    @tf.nondifferentiable_batch_function(
        config.num_batch_threads,
        config.max_batch_size,
        config.batch_timeout_micros,
        config.allowed_batch_sizes,
        config.max_enqueued_batches,
        autograph=False,
    )
    def batched_tpu_computation(*flat):
        return call(tf.nest.pack_sequence_as(inputs, flat))

    return batched_tpu_computation(*tf.nest.flatten(inputs))


def _tensors_of(output: ExportOutput) -> Tensors:
    if isinstance(output, ClassificationOutput):
        return [output.scores, output.classes]
    if isinstance(output, RegressionOutput):
        return [output.value]
    if isinstance(output, PredictOutput):
        return list(output.outputs.values())
    raise ValueError(
        "`export_output` must be have type `ClassificationOutput`, `RegressionOutput`, or "
        f"`PredictOutput`; got {output}. Change the output, or export no graph for TPU with "
        "export_to_tpu=False."
    )


def _rebuilt(output: ExportOutput, tensors: Tensors) -> ExportOutput:
    if isinstance(output, ClassificationOutput):
        return ClassificationOutput(*tensors)
    if isinstance(output, RegressionOutput):
        return RegressionOutput(*tensors)
    return PredictOutput(dict(zip(output.outputs, tensors, strict=True)))
