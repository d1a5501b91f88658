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
from tensorflow.python.tpu import tpu_function

from tpu_estimator_compat.program import graph_building, outside_compilation
from tpu_estimator_compat.program.exchanging_optimizers import exchanging_optimizers
from tpu_estimator_compat.program.graph_ops import Key, key
from tpu_estimator_compat.program.keras_layers import generators_outside_checkpoints
from tpu_estimator_compat.program.partition import Dims
from tpu_estimator_compat.runtime import eager

Structure = Any


@dataclasses.dataclass
class CapturedGraph:
    """One mode of a model, as a graph.

    Attributes:
      graph: the TF1 graph in which model_fn ran.
      element_spec: structure of `tf.TypeSpec`s of one replica's input element.
      feeds: the placeholders that stand for that element, flattened, composites expanded.
      spec: what model_fn returned (an EstimatorSpec or TPUEstimatorSpec).
      replica_ops: ops that belong to the replicas even if they ignore the input.
      same_on_all_replicas: the host gets the first replica's tensors, since all compute the same;
        they are not concatenated, and may be scalars.
      chief_ops: host ops that only the chief of several machines runs, such as writing events.
      chief_ops_every: run those in every so manieth step of a loop, from the first on.
      partition: for every feed the partition counts of its dimensions, or None; None in all for no
        partition.
      step_in_loop: counts the steps since `begin_loop`; None where nobody asks.
      host_placeholders: stand for tensors concatenated over replicas, by `key()`, each with the
        replicas' tensor.
    """

    graph: tf.Graph
    element_spec: Structure
    feeds: list[tf.Tensor]
    spec: Any = None
    replica_ops: set[str] = dataclasses.field(default_factory=set)
    same_on_all_replicas: bool = False
    chief_ops: set[str] = dataclasses.field(default_factory=set)
    chief_ops_every: int = 1
    step_in_loop: tf.Variable | None = None
    partition: list[Dims] | None = None
    host_placeholders: dict[Key, tuple[tf.Tensor, tf.Tensor]] = dataclasses.field(
        default_factory=dict
    )
    _reach: dict[str, tuple[int, set[str]]] = dataclasses.field(default_factory=dict, repr=False)

    def host_placeholder(self, tensor: tf.Tensor, replicas: int) -> tf.Tensor:
        """A host placeholder for `tensor` concatenated over replicas along dimension 0.

        Args:
          tensor: a tensor of this graph, of rank 1 or more.
          replicas: how many replicas there are.

        Returns:
          A placeholder of shape [replicas * batch, ...], or of the tensor's own shape where the
          first replica speaks for all.

        Raises:
          RuntimeError: `tensor` is a scalar, which cannot be concatenated.
        """
        if tensor.shape.rank == 0 and not self.same_on_all_replicas:
            raise RuntimeError(
                f"All tensors outfed from TPU should preserve batch size dimension, but got scalar "
                f"{tensor}. Reshape it, for example with tf.reshape(tensor, [1])."
            )
        with self.graph.as_default():
            tensor = tf.convert_to_tensor(tensor)  # it may be a variable
        shape = tf.TensorShape(tensor.shape)
        if self.same_on_all_replicas or shape.rank is None:
            pass
        elif shape[0] is not None:
            shape = tf.TensorShape([shape[0] * replicas]).concatenate(shape[1:])
        else:
            shape = tf.TensorShape([None]).concatenate(shape[1:])
        with self.graph.as_default():
            placeholder = tf.compat.v1.placeholder(
                tensor.dtype, shape, name=f"over_replicas/{tensor.op.name}"
            )
        self.host_placeholders[key(placeholder)] = (placeholder, tensor)
        return placeholder

    def depends_on_input(self) -> set[str]:
        """Names of ops that need the step's input element, directly or not."""
        return self._reached("input", [t.op.name for t in self.feeds])

    def count_steps(self) -> tf.Variable:
        """The variable that counts the steps of a loop, on the host."""
        if self.step_in_loop is None:
            with eager.eager_mode(), tf.device("/cpu:0"):
                self.step_in_loop = tf.Variable(0, dtype=tf.int64, trainable=False)
        return self.step_in_loop

    def begin_loop(self) -> None:
        """Counts the steps of a loop from 0 again."""
        if self.step_in_loop is not None:
            with eager.eager_mode():
                self.step_in_loop.assign(0)

    def depends_on_host_placeholders(self) -> set[str]:
        """Names of ops that need something concatenated over replicas: the host's share."""
        return self._reached("host", [name for name, _ in self.host_placeholders])

    def is_host(self, op: tf.Operation) -> bool:
        """Whether `op` is the host's share of a step, and not the replicas'."""
        if op.name in self.depends_on_host_placeholders():
            return True
        if op.name in self.replica_ops:
            return False
        return op.name not in self.depends_on_input()

    def _reached(self, kind: str, roots: Sequence[str]) -> set[str]:
        version, reached = self._reach.get(kind, (-1, set()))
        if version != self.graph.version:
            reached = set(roots)
            for op in self.graph.get_operations():
                before = [*(t.op for t in op.inputs), *op.control_inputs]
                if any(b.name in reached for b in before):
                    reached.add(op.name)
            self._reach[kind] = (self.graph.version, reached)
        return reached

    def trainable_names(self) -> list[str]:
        collection = self.graph.get_collection(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)
        return [v.op.name for v in collection]


def placeholders(element_spec: Structure) -> tuple[Structure, list[tf.Tensor]]:
    """Placeholders for an element, in the default graph.

    Args:
      element_spec: structure of `tf.TypeSpec`s.

    Returns:
      The element made of placeholders, and its flat tensors.
    """
    flat_specs = tf.nest.flatten(element_spec, expand_composites=True)
    flat = [tf.compat.v1.placeholder(s.dtype, s.shape, name="input") for s in flat_specs]
    return tf.nest.pack_sequence_as(element_spec, flat, expand_composites=True), flat


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
) -> CapturedGraph:
    """Runs `call` in a new graph on placeholders for one replica's input element.

    Args:
      call: takes the element, calls the user's model_fn, returns its spec.
      element_spec: what one replica is fed: structure of `tf.TypeSpec`s.
      seed: the graph-level random seed, or None.
      replicas: how many replicas will run the graph.
      tpu_semantics: whether CrossShardOptimizer is to see them; else every TF1 optimizer does.
      for_tpu: whether they are cores of a TPU, for which ops can be marked to run on the host.

    Returns:
      The captured graph; its default-graph context has been left.
    """
    with new_graph(seed) as graph:
        element, feeds = placeholders(element_spec)
        captured = CapturedGraph(graph, element_spec, feeds)
        exchange = tpu_function.tpu_shard_context if tpu_semantics else exchanging_optimizers
        marks = outside_compilation.marked(replicas) if for_tpu else contextlib.nullcontext()
        with exchange(replicas), marks:
            captured.spec = call(element)
    return captured


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
