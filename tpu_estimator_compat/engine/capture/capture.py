"""Captures the graph that a model_fn builds, and the parts of its result that the engine needs.

Legacy functions rely on a real `tf.Graph`: op names, collections, `get_variable` inside a custom
optimizer's `apply_gradients`, `init_from_checkpoint`, ops that exist but must not run. So each call
of train, evaluate or predict makes a graph, in which input_fn and then model_fn run.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.capture import graph_building, outside_compilation, xla_contexts
from tpu_estimator_compat.engine.capture.exchanging_optimizers import exchanging_optimizers
from tpu_estimator_compat.engine.capture.keras_layers import generators_outside_checkpoints
from tpu_estimator_compat.engine.capture.legacy_graph import LegacyGraph
from tpu_estimator_compat.tf_internals import tpu_function, training_util

Structure = Any


@dataclasses.dataclass(frozen=True)
class Element:
    """One replica's input element: tensors between the input's ops and the step's.

    Attributes:
      structure: features, or (features, labels), made of tensors of the graph.
      spec: structure of `tf.TypeSpec`s of a step's input; empty where the step computes it.
      feeds: the step's input tensors, flat, composites expanded.
      made_of: in place of `feeds`, the tensors that a step computes itself.
    """

    structure: Structure
    spec: Structure
    feeds: list[tf.Tensor]
    made_of: list[tf.Tensor] = dataclasses.field(default_factory=list)


def placeholders(element_spec: Structure) -> Element:
    flat_specs = tf.nest.flatten(element_spec, expand_composites=True)
    flat = [tf.compat.v1.placeholder(s.dtype, s.shape, name="input") for s in flat_specs]
    structure = tf.nest.pack_sequence_as(element_spec, flat, expand_composites=True)
    return Element(structure, element_spec, flat)


@contextlib.contextmanager
def new_graph(
    seed: int | None,
    *,
    resource_step: bool = False,
    reads_step: bool = False,
    for_session: bool = False,
    device_fn: Callable[[tf.Operation], str] | None = None,
) -> Iterator[tf.Graph]:
    """A new default graph for legacy functions, with a global step; names begin anew in each.

    Args:
      resource_step: whether the global step is a resource variable even with v1 behavior.
      reads_step: whether to make TensorFlow's own read of the global step now, as the original's
        training did: an op without a seed gets a seed from the number of ops before it.
      for_session: whether one of TensorFlow's sessions will run the graph.
      device_fn: returns the device of an operation; None for no devices.
    """
    graph = LegacyGraph()
    semantics = graph_building.capture_semantics(for_session=for_session)
    with semantics, graph_building.fresh_keras_names(), graph.as_default():
        tf.compat.v1.set_random_seed(seed)
        with graph.device(device_fn):
            with _resource_variables() if resource_step else contextlib.nullcontext():
                tf.compat.v1.train.create_global_step(graph)
            if reads_step:
                training_util._get_or_create_global_step_read(graph)
            with generators_outside_checkpoints(), graph_building.seeded_initializers(seed):
                yield graph


@contextlib.contextmanager
def _resource_variables() -> Iterator[None]:
    """A context in which variables are resource variables, as under all strategies."""

    def create(next_creator: Callable[..., tf.Variable], **kwargs: Any) -> tf.Variable:
        return next_creator(**{**kwargs, "use_resource": True})

    with tf.variable_creator_scope(create):
        yield


def capture(
    call: Callable[[Structure], Any],
    element: Element,
    *,
    replicas: int,
    tpu_semantics: bool,
    for_tpu: bool = False,
    compiled: bool = False,
) -> Any:
    """The result of `call`, made in the default graph on one replica's input element.

    Args:
      call: takes the element, calls the user's model_fn, returns its spec.
      tpu_semantics: whether CrossShardOptimizer exchanges gradients; if not, every optimizer does.
      for_tpu: whether ops can be marked to run on a TPU's host.
      compiled: whether XLA compiles the graph.
    """
    exchange = tpu_function.tpu_shard_context if tpu_semantics else exchanging_optimizers
    marks = outside_compilation.marked(replicas) if for_tpu else contextlib.nullcontext()
    asked = compiled or tpu_semantics
    around = xla_contexts.of_replica(compiled) if asked else contextlib.nullcontext()
    resources = tpu_semantics or replicas > 1
    of_strategy = _resource_variables() if resources else contextlib.nullcontext()
    with exchange(replicas), marks, around, of_strategy:
        return call(element.structure)


def check_element(element: Structure, element_spec: Structure) -> None:
    """Raises ValueError, naming both, where `element` does not fit the captured input."""
    try:
        tf.nest.assert_same_structure(element_spec, element, expand_composites=True)
    except (ValueError, TypeError):
        raise ValueError(
            f"The input has another structure than the one that model_fn was captured with.\n"
            f"Captured: {element_spec}\nGiven: {element}"
        ) from None
    specs = tf.nest.flatten(element_spec, expand_composites=True)
    for spec, tensor in zip(specs, tf.nest.flatten(element, expand_composites=True), strict=True):
        if not spec.shape.is_compatible_with(tensor.shape) or spec.dtype != tensor.dtype:
            raise ValueError(
                f"The input differs from the one that model_fn was captured with: expected dtype "
                f"{spec.dtype.name} and shape {spec.shape}, got {tensor.dtype.name} and "
                f"{tensor.shape}. Give batches of that signature, or make a new estimator."
            )


def plain_element(data: Any) -> Any:
    """Keras' data as an input_fn's element: features, or (features, labels)."""
    if not isinstance(data, (tuple, list)) or hasattr(data, "_fields"):
        return data
    parts = [part for part in data if part is not None]
    if len(parts) > 2:
        raise ValueError(
            "sample_weight is not supported: model_fn takes features and labels. Put the weights "
            "into the features, and use them in model_fn."
        )
    return parts[0] if len(parts) == 1 else tuple(parts)
