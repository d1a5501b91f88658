"""Captures what a model_fn builds, in a TF1 graph, and keeps what the engine needs of the result.

Legacy functions rely on a real `tf.Graph`: op names, collections, `get_variable` inside a custom
optimizer's `apply_gradients`, `init_from_checkpoint`, ops that exist but must not run. So they get
one for each call of train, evaluate or predict: input_fn is called in it, then model_fn.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.capture import graph_building, outside_compilation, xla_contexts
from tpu_estimator_compat.engine.capture.exchanging_optimizers import exchanging_optimizers
from tpu_estimator_compat.engine.capture.keras_layers import generators_outside_checkpoints
from tpu_estimator_compat.engine.capture.legacy_graph import LegacyGraph
from tpu_estimator_compat.tf_internals import tpu_function, training_util

Structure = Any


@dataclasses.dataclass(frozen=True)
class Element:
    """One replica's input element in the graph, and where the graph is cut.

    What is upstream of the element's tensors is the input's, what is downstream the step's.

    Attributes:
      structure: features, or (features, labels), made of tensors of the graph.
      spec: a step's input: structure of `tf.TypeSpec`s; empty where it computes its element.
      feeds: the tensors that a step is given values of, flat, composites expanded.
      made_of: in place of `feeds`, the tensors that a step computes itself.
    """

    structure: Structure
    spec: Structure
    feeds: list[tf.Tensor]
    made_of: list[tf.Tensor] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class CapturedGraph:
    """One mode of a model, as a graph.

    Attributes:
      graph: the TF1 graph in which model_fn ran.
      element: the input element of one replica.
      spec: the result of model_fn (an EstimatorSpec or TPUEstimatorSpec).
    """

    graph: tf.Graph
    element: Element
    spec: Any

    @property
    def element_spec(self) -> Structure:
        """The structure of `tf.TypeSpec`s of a step's input."""
        return self.element.spec

    @property
    def feeds(self) -> list[tf.Tensor]:
        """The tensors that a step is given values of."""
        return self.element.feeds


def placeholders(element_spec: Structure) -> Element:
    """An element of placeholders in the default graph.

    Args:
      element_spec: structure of `tf.TypeSpec`s.
    """
    flat_specs = tf.nest.flatten(element_spec, expand_composites=True)
    flat = [tf.compat.v1.placeholder(s.dtype, s.shape, name="input") for s in flat_specs]
    structure = tf.nest.pack_sequence_as(element_spec, flat, expand_composites=True)
    return Element(structure, element_spec, flat)


@contextlib.contextmanager
def new_graph(seed: int | None, *, reads_step: bool = False) -> Iterator[tf.Graph]:
    """A new default graph for legacy functions, with a global step; the same names in every one.

    Args:
      seed: the graph-level random seed, or None.
      reads_step: whether TensorFlow's own read of the global step is made now, as the original had
        it in training. An op without a seed draws by the number of ops before it.
    """
    graph = LegacyGraph()
    with graph_building.capture_semantics(), graph_building.fresh_keras_names(), graph.as_default():
        tf.compat.v1.set_random_seed(seed)
        tf.compat.v1.train.create_global_step(graph)
        if reads_step:
            training_util._get_or_create_global_step_read(graph)
        with generators_outside_checkpoints(), graph_building.seeded_initializers(seed):
            yield graph


def capture(
    call: Callable[[Structure], Any],
    element: Element,
    *,
    replicas: int,
    tpu_semantics: bool,
    for_tpu: bool = False,
    compiled: bool = False,
) -> CapturedGraph:
    """Runs `call` in the default graph, on one replica's input element.

    Args:
      call: takes the element, calls the user's model_fn, returns its spec.
      element: in the default graph.
      replicas: the number of replicas that will run the graph.
      tpu_semantics: whether CrossShardOptimizer is to see them; else every TF1 optimizer does.
      for_tpu: whether they are cores of a TPU, for which ops can be marked to run on the host.
      compiled: whether XLA compiles what they run.
    """
    graph = tf.compat.v1.get_default_graph()
    exchange = tpu_function.tpu_shard_context if tpu_semantics else exchanging_optimizers
    marks = outside_compilation.marked(replicas) if for_tpu else contextlib.nullcontext()
    asked = compiled or tpu_semantics
    around = xla_contexts.of_replica(compiled) if asked else contextlib.nullcontext()
    with exchange(replicas), marks, around:
        spec = call(element.structure)
    _leave_out_inner_summaries(graph)
    return CapturedGraph(graph, element, spec)


def _leave_out_inner_summaries(graph: tf.Graph) -> None:
    """Takes summaries of loops and branches out of the graph's collection.

    They have a value there only, so that nothing can write them, and `Scaffold` cannot merge them.
    """
    summaries = graph.get_collection_ref(tf.compat.v1.GraphKeys.SUMMARIES)
    inner = [summary for summary in summaries if summary.graph is not graph]
    if not inner:
        return
    summaries[:] = [summary for summary in summaries if summary.graph is graph]
    logging.warning(
        "Summaries in a tf.while_loop or tf.cond are not written: %s. They have no value outside. "
        "Return the values from the loop or branch, and summarize them there.",
        ", ".join(summary.op.name for summary in inner),
    )


def as_operation(target: Any) -> tf.Operation:
    """The operation behind a train_op of any kind: Operation, Tensor or variable."""
    return target if isinstance(target, tf.Operation) else target.op


def check_element(element: Structure, element_spec: Structure) -> None:
    """Raises ValueError, naming both, where `element` does not fit what was captured."""
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
    """Keras' data as an input_fn's element: features, or (features, labels).

    Raises:
      ValueError: there are sample weights, which a model_fn knows nothing of.
    """
    if not isinstance(data, (tuple, list)) or hasattr(data, "_fields"):
        return data
    parts = [part for part in data if part is not None]
    if len(parts) > 2:
        raise ValueError(
            "sample_weight is not supported: model_fn takes features and labels. Put the weights "
            "into the features, and use them in model_fn."
        )
    return parts[0] if len(parts) == 1 else tuple(parts)
