"""Calls a model_fn once, in a TF1 graph of its own, and keeps what the engine needs of the result.

Legacy model_fns rely on a real `tf.Graph`: op names, collections, `get_variable` inside a custom
optimizer's `apply_gradients`, `init_from_checkpoint`, ops that exist but must not run. So they get
one, with placeholders in place of the input pipeline.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging
from tensorflow.python.tpu import tpu_function

from tpu_estimator_compat.program import graph_building, outside_compilation
from tpu_estimator_compat.program.exchanging_optimizers import exchanging_optimizers
from tpu_estimator_compat.program.keras_layers import generators_outside_checkpoints

Structure = Any


@dataclasses.dataclass(frozen=True)
class CapturedGraph:
    """One mode of a model, as a graph.

    Attributes:
      graph: the TF1 graph in which model_fn ran.
      element_spec: structure of `tf.TypeSpec`s of one replica's input element.
      feeds: the placeholders that stand for that element, flattened, composites expanded.
      spec: what model_fn returned (an EstimatorSpec or TPUEstimatorSpec).
    """

    graph: tf.Graph
    element_spec: Structure
    feeds: list[tf.Tensor]
    spec: Any


def placeholders(
    element_spec: Structure, names: Sequence[str] = ()
) -> tuple[Structure, list[tf.Tensor]]:
    """Placeholders for an element, in the default graph.

    Args:
      element_spec: structure of `tf.TypeSpec`s.
      names: how hooks find the element's tensors, such as `IteratorGetNext:1`; empty for none.

    Returns:
      The element made of placeholders, and the flat placeholders.
    """
    flat_specs = tf.nest.flatten(element_spec, expand_composites=True)
    flat = [tf.compat.v1.placeholder(s.dtype, s.shape, name="input") for s in flat_specs]
    if len(names) == len(flat):
        _name(flat, names)
    return tf.nest.pack_sequence_as(element_spec, flat, expand_composites=True), flat


def _name(tensors: list[tf.Tensor], names: Sequence[str]) -> None:
    """Copies the tensors, for whoever fetches them by the given names.

    An operation with several outputs copies all of them at once, some that a step does without, or
    that XLA has no type for. So the model is not made of the copies.

    Names are left out where no operation can be made that has just these outputs.
    """
    outputs: dict[str, dict[int, int]] = {}
    for position, name in enumerate(names):
        operation, _, output = name.partition(":")
        outputs.setdefault(operation, {})[int(output)] = position
    for operation, positions in outputs.items():
        if sorted(positions) != list(range(len(positions))):
            continue  # input_fn took only some of the outputs
        tf.identity_n([tensors[positions[i]] for i in range(len(positions))], name=operation)


@contextlib.contextmanager
def new_graph(seed: int | None) -> Iterator[tf.Graph]:
    """A new default graph for a model_fn, with a global step; the same names in every one.

    Args:
      seed: the graph-level random seed, or None.
    """
    graph = tf.Graph()
    with graph_building.capture_semantics(), graph_building.fresh_keras_names(), graph.as_default():
        tf.compat.v1.set_random_seed(seed)
        tf.compat.v1.train.create_global_step(graph)
        with generators_outside_checkpoints(), graph_building.seeded_initializers(seed):
            yield graph


def capture(
    call: Callable[[Structure], Any],
    element_spec: Structure,
    *,
    seed: int | None,
    replicas: int,
    tpu_semantics: bool,
    for_tpu: bool = False,
    compiled: bool = False,
    names: Sequence[str] = (),
) -> CapturedGraph:
    """Runs `call` in a new graph on placeholders for one replica's input element.

    Args:
      call: takes the element, calls the user's model_fn, returns its spec.
      element_spec: what one replica is fed: structure of `tf.TypeSpec`s.
      seed: the graph-level random seed, or None.
      replicas: how many replicas will run the graph.
      tpu_semantics: whether CrossShardOptimizer is to see them; else every TF1 optimizer does.
      for_tpu: whether they are cores of a TPU, for which ops can be marked to run on the host.
      compiled: whether XLA compiles what they run.
      names: how hooks find the element's tensors, such as `IteratorGetNext:1`; empty for none.

    Returns:
      The captured graph; its default-graph context has been left.
    """
    with new_graph(seed) as graph:
        element, feeds = placeholders(element_spec, names)
        exchange = tpu_function.tpu_shard_context if tpu_semantics else exchanging_optimizers
        marks = outside_compilation.marked(replicas) if for_tpu else contextlib.nullcontext()
        xla = graph_building.for_xla() if compiled else contextlib.nullcontext()
        with exchange(replicas), marks, xla:
            spec = call(element)
        _leave_out_inner_summaries(graph)
    return CapturedGraph(graph, element_spec, feeds, spec)


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
        "Return what they show from the loop or branch, and summarize that.",
        ", ".join(summary.op.name for summary in inner),
    )


def as_operation(target: Any) -> tf.Operation:
    """The operation behind a train_op of any kind: Operation, Tensor or variable."""
    return target if isinstance(target, tf.Operation) else target.op


def check_element(element: Structure, element_spec: Structure) -> None:
    """Raises ValueError, naming both, where `element` does not fit what was captured."""
    try:
        tf.nest.assert_same_structure(element_spec, element, expand_composites=True)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"The input has another structure than the one that model_fn was captured with.\n"
            f"Captured: {element_spec}\nGiven: {element}\n{error}"
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
    """What Keras calls data, as an input_fn's element: features, or (features, labels).

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
