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

from tpu_estimator_compat.engine.capture import branch_values, graph_building, xla_contexts
from tpu_estimator_compat.engine.capture.keras_layers import generators_outside_checkpoints
from tpu_estimator_compat.engine.capture.replica_context import in_replica
from tpu_estimator_compat.tf_internals import nest, tpu_function, training_util

Structure = Any
_KEPT = 64 * 2**20  # bytes of a GraphDef; larger ones have constants, which are slow to copy


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


class LegacyGraph(tf.Graph):
    """A TF1 graph that takes tensors of its branches, and, once finalized, infers shapes only once.

    A training with two checkpoints asks for the GraphDef with shapes five times: for the text,
    twice for events, and for each checkpoint. TensorFlow asks every tensor for its shape each time.
    """

    _shaped: tuple[int, bytes] | None = None

    def __repr__(self) -> str:
        return "<tf.Graph of this call of the estimator>"  # for TensorFlow's errors

    def control_dependencies(self, control_inputs: Any) -> Any:
        if isinstance(control_inputs, (list, tuple)):
            control_inputs = [branch_values.awaited(self, each) for each in control_inputs]
        return super().control_dependencies(control_inputs)

    def _create_op_internal(
        self,
        op_type: str,
        inputs: Any,
        dtypes: Any = None,
        input_types: Any = None,
        name: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> tf.Operation:
        if any(each.graph is not self for each in inputs):
            inputs = [branch_values.outside(self, each, name or op_type) for each in inputs]
        return super()._create_op_internal(
            op_type, inputs, dtypes, input_types, name, *args, **kwargs
        )

    def as_graph_def(
        self, from_version: int | None = None, add_shapes: bool = False, **kwargs: Any
    ) -> tf.compat.v1.GraphDef:
        if from_version is not None or not add_shapes or not self.finalized:
            return super().as_graph_def(from_version, add_shapes, **kwargs)
        if self._shaped is None or self._shaped[0] != self.version:
            graph_def = super().as_graph_def(add_shapes=True, **kwargs)
            self._shaped = None
            if graph_def.ByteSize() <= _KEPT:
                self._shaped = (self.version, graph_def.SerializeToString())
            return graph_def
        return tf.compat.v1.GraphDef.FromString(self._shaped[1])


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
    strategy: tf.distribute.Strategy | None = None,
    for_tpu: bool = False,
    compiled: bool = False,
) -> Any:
    """The result of `call`, made in the default graph on one replica's input element.

    Args:
      call: takes the element, calls the user's model_fn, returns its spec.
      tpu_semantics: whether `call` sees shards, and CrossShardOptimizer exchanges gradients.
      strategy: what it sees otherwise, if any; every optimizer exchanges gradients then.
      for_tpu: whether ops can be marked to run on a TPU's host.
      compiled: whether XLA compiles the graph.
    """
    shards = tpu_function.tpu_shard_context(replicas) if tpu_semantics else in_replica(strategy)
    marks = xla_contexts.marked(replicas) if for_tpu else contextlib.nullcontext()
    asked = compiled or tpu_semantics
    around = xla_contexts.of_replica(compiled) if asked else contextlib.nullcontext()
    for tensor in tf.nest.flatten(element.structure, expand_composites=True) if asked else ():
        xla_contexts.note_of_replica(tensor.op)
    resources = _resource_variables() if tpu_semantics else contextlib.nullcontext()
    with shards, marks, around, resources:
        return call(element.structure)


def check_element(element: Structure, element_spec: Structure) -> None:
    """Raises ValueError, naming both, where `element` does not fit the captured input."""
    try:
        tf.nest.assert_same_structure(element_spec, element, expand_composites=True)
    except (ValueError, TypeError):
        raise ValueError(
            f"The input has another structure than the one that model_fn was captured with.\n"
            f"Captured: {element_spec}\nGiven: {element}\nGive batches like the captured ones, or "
            "make a new estimator."
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


def element_names(element_spec: Any) -> list[str]:
    """The name of each flat tensor of an input element, such as "features['x']"."""
    found = []
    for path, spec in nest.flatten_with_tuple_paths(element_spec):
        if isinstance(element_spec, tuple):
            first, *rest = path  # an index of a plain tuple, a field's name of `Padded`
            first = ("features", "labels")[first] if isinstance(first, int) else first
        else:
            first, rest = "features", path
        name = first + "".join(f"[{part!r}]" for part in rest)
        parts = len(nest.flatten(spec, expand_composites=True))
        found += [name] if parts == 1 else [f"{name} (part {i + 1})" for i in range(parts)]
    return found


def check_no_strings(element_spec: Any) -> None:
    """Raises ValueError, with the tensors' names, where an element for a TPU has strings."""
    specs = nest.flatten(element_spec, expand_composites=True)
    names = element_names(element_spec)
    strings = [n for n, spec in zip(names, specs, strict=True) if spec.dtype == tf.string]
    if strings:
        raise ValueError(
            f"input_fn gives strings, which the cores of a TPU cannot take: {', '.join(strings)}. "
            "Drop them in input_fn, or turn them into integers there."
        )
