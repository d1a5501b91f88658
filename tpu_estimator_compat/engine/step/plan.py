"""The plan of a step: the computation of one step of a mode, as a value; `cut` divides it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import Key
from tpu_estimator_compat.engine.refs import resource_graph
from tpu_estimator_compat.engine.step import collectives
from tpu_estimator_compat.engine.step.host_stage import HostStage

Structure = Any
Dims = Sequence[int] | None
"""The number of parts of a tensor along each dimension; None replicates the tensor."""


@dataclasses.dataclass(frozen=True)
class StepPlan:
    """The plan of one step of a mode: all that a runtime needs to run it.

    Attributes:
      element_spec: structure of `tf.TypeSpec`s of one replica's input element.
      feeds: the tensors that stand for that element, flattened, composites expanded.
      fetches, targets: tensors that each step returns; operations that it runs for their effect.
      loss: the same on all replicas; None where the mode has no loss. Fetches of the device part
        are the first replica's.
      replica_ops: names of ops that belong to the replicas even if they ignore the input.
      host_placeholders: by `key()`, a placeholder of the host part, and the tensor for which it
        stands: of the replicas, or of the host stage.
      host_stage: the host's part of the step before the device part; None for none.
      host_calls: names of the host part's targets that only the chief of several workers runs, such
        as the writing of events.
      host_calls_every: host calls run in every n-th step of a loop, starting with the first.
      same_on_all_replicas: whether all replicas compute the same, so that the first one's tensors
        stand for all.
      partition: for each feed, the number of parts along each dimension, or None to replicate it;
        None for no partitioning at all.
      jit_compile: whether the device part is compiled with XLA.
      trains: whether a step trains. A loop of such steps ends after one whose loss is NaN.
      made_of: the element's tensors, if the step computes them itself; `feeds` is then empty.
    """

    graph: tf.Graph
    element_spec: Structure
    feeds: Sequence[tf.Tensor]
    fetches: Sequence[tf.Tensor] = ()
    targets: Sequence[tf.Operation] = ()
    loss: tf.Tensor | None = None
    replica_ops: frozenset[str] = frozenset()
    host_placeholders: Mapping[Key, tuple[tf.Tensor, tf.Tensor]] = dataclasses.field(
        default_factory=dict
    )
    host_stage: HostStage | None = None
    host_calls: frozenset[str] = frozenset()
    host_calls_every: int = 1
    same_on_all_replicas: bool = False
    partition: Sequence[Dims] | None = None
    jit_compile: bool = False
    trains: bool = False
    made_of: Sequence[tf.Tensor] = ()
    _reach: dict[str, tuple[int, set[str]]] = dataclasses.field(
        default_factory=dict, repr=False, compare=False
    )

    def of(self, fetches: Sequence[tf.Tensor], targets: Sequence[tf.Operation]) -> StepPlan:
        """A plan for other fetches and targets of the same graph, not compiled with XLA."""
        return dataclasses.replace(
            self, fetches=tuple(fetches), targets=tuple(targets), jit_compile=False
        )

    def needs_step(self, op: tf.Operation) -> bool:
        """Whether `op` has a value only within a step."""
        return (
            op.name in self.replica_ops
            or op.name in self.behind_input()
            or op.name in self.behind_host_placeholders()
        )

    @functools.cached_property
    def counts_by_one(self) -> bool:
        """Whether each step raises the global step by one, and not, say, in one branch only.

        Known once the graph is complete: it is converted to resource variables for that.
        """
        step = tf.compat.v1.train.get_global_step(self.graph)
        resources = resource_graph.of(self.graph)
        asked = [*(t.op for t in self.fetches), *self.targets]
        run = graph_ops.ancestors(map(resources.operation, asked), ())
        users = {op for t in resources.operation(step.op).outputs for op in t.consumers()} & run
        writes = [
            op for op in users if any(t.op.name == step.op.name for t in graph_ops.written(op))
        ]
        by = [tf.get_static_value(x.inputs[1]) for x in writes if x.type == "AssignAddVariableOp"]
        return len(writes) == 1 and by == [1]

    def behind_input(self) -> set[str]:
        """Names of ops that need the step's input element, or its replicas, directly or not."""
        return self._reached("input", self.input_roots)

    @functools.cached_property
    def input_roots(self) -> frozenset[str]:
        """Names of the ops that give the step's element: its feeds, iterators, Python functions."""
        made = graph_ops.ancestors([t.op for t in self.made_of], ())
        drawing = [op.name for op in made if graph_ops.draws(op)]
        return frozenset([*(t.op.name for t in self.replica_feeds), *drawing])

    @property
    def replica_feeds(self) -> list[tf.Tensor]:
        """The inputs of the device part: the element, then the tensors of the host stage."""
        return [*self.feeds, *(self.host_stage.placeholders if self.host_stage else ())]

    def is_of_stage(self, tensor: tf.Tensor) -> bool:
        """Whether the host stage, not a replica, computes `tensor`."""
        return self.host_stage is not None and self.host_stage.gives(tensor)

    def behind_host_placeholders(self) -> set[str]:
        """Names of ops that depend on tensors concatenated over replicas."""
        names = [name for name, _ in self.host_placeholders]
        return self._reached("host", names) if names else set()

    def _reached(self, kind: str, roots: Iterable[str]) -> set[str]:
        version, reached = self._reach.get(kind, (-1, set()))
        if version != self.graph.version:
            reached = set(roots)
            for op in self.graph.get_operations():
                before = [*(t.op for t in op.inputs), *op.control_inputs]
                of_replica = kind == "input" and collectives.depends_on_replicas(op)
                if of_replica or any(b.name in reached for b in before):
                    reached.add(op.name)
            self._reach[kind] = (self.graph.version, reached)
        return reached

    def trainable_names(self) -> list[str]:
        collection = self.graph.get_collection(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)
        return [v.op.name for v in collection]
