"""A callable that runs a pruned graph, cut into stages, on the replica that calls it.

Called inside `strategy.run` (or in a plain tf.function for host work), it imports the pieces into
the function under construction, maps feeds to the replica's tensors and every variable handle to
the replica's own variable. So a replica sees plain local variables, as on a TPU core: TF1
optimizers never meet a strategy, and replicas communicate by the graph's collectives alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.functions import functions, placement
from tpu_estimator_compat.engine.graph import (
    graph_def,
    graph_ops,
    importing,
    simplify,
)
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.refs import resource_graph
from tpu_estimator_compat.engine.step import collectives, replicated_ops, stage_functions, stages
from tpu_estimator_compat.engine.step.stage_functions import StateRewrite
from tpu_estimator_compat.tf_internals import tensor_shape

_OF_COMPOSITES = frozenset({"DeserializeSparse", "RaggedTensorFromVariant", "Identity"})
HandleOf = Callable[[tf.Operation], tf.Tensor]


class ReplicaProgram:
    """A part of a captured graph: takes feeds, returns fetches, runs targets.

    Args:
      replicas: the number of replicas that run this program together; 1 for host work.
      rewrites: for devices with kernels for collectives (TPU): as for `graph_def.subgraph_def`.
        None for others, where replicas exchange values between stages.
      reads_first: whether a read that waits for nothing comes before all writes.
      waits_for: feeds, or tensors of the program, for which each change of a variable waits, even
        if it does not depend on them, so that a step at the end of the data changes no variable.
      done: operations that have run already, and for which nothing waits.

    Attributes:
      feeds, fetches: as given; the other attributes are of the graph on resource variables.
      native_collectives: whether collectives are left in place.
    """

    def __init__(
        self,
        graph: tf.Graph,
        feeds: Sequence[tf.Tensor],
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation] = (),
        *,
        replicas: int = 1,
        rewrites: graph_def.Rewrites | None = None,
        reads_first: bool = False,
        waits_for: Sequence[tf.Tensor] = (),
        done: Collection[tf.Operation] = (),
    ):
        resources = resource_graph.of(graph)
        self.graph = resources.graph
        self._copies = [resources.fed(t) for t in feeds]
        self.feeds = list(feeds)
        self._fed = [copy for copies in self._copies for copy in copies]
        self.fetches = list(fetches)
        self._results = [resources.tensor(t) for t in fetches]
        self.targets = [resources.operation(op) for op in targets]
        self.replicas = replicas
        self.native_collectives = rewrites is not None
        self._reads_first = reads_first
        self._waits_for = [resources.tensor(t) for t in waits_for]
        done = {resources.operation(op) for op in done}
        self._rewrites = collectives.ALONE if rewrites is None else rewrites
        fed = {key(t) for t in self._fed}
        wanted = [t.op for t in self._results if key(t) not in fed]
        ops = graph_ops.ancestors([*wanted, *self.targets], fed, done)
        resources.check(ops)
        self.handles = graph_ops.in_creation_order(filter(graph_ops.is_handle, ops))
        stops = fed | {(op.name, 0) for op in self.handles}
        idle = (simplify.idle_gates(ops) - set(self.targets)) | set(done)
        self._given = _given(self._fed)
        needed = graph_ops.ancestors([*wanted, *self.targets], stops, {*idle, *self._given})
        self._finish(needed - set(self.handles), stops)
        memory = map(resources.memory_of, fetches)
        written = set(self.written_handles())
        self._read_last = [h if h is not None and h.op in written else None for h in memory]

    def _finish(self, ops: set[tf.Operation], stops: set[Key]) -> None:
        self.ops, self.stops = ops, stops
        native = self.native_collectives
        exchanged = set() if native else collectives.exchanged(self.ops, self.replicas)
        self.stages = stages.cut(
            self.ops, self._results, stops, exchanged=exchanged, reads_first=self._reads_first
        )
        self._graph_defs: dict[tuple[int, int | None], tf.compat.v1.GraphDef] = {}
        self._differs: dict[int, bool] = {}
        self._shared: dict[int, bool] = {}
        self._functions: dict[Hashable, stage_functions.StageFunction] = {}
        targets = set(self.targets)
        self._wanted = [[op for op in stage.ops if op in targets] for stage in self.stages]
        given = self._given
        self._awaited = [  # feeds that are only control inputs of a stage
            {c.name: given[c] for op in stage.ops for c in op.control_inputs if c in given}
            for stage in self.stages
        ]
        self._waits = [self._wait(stage) for stage in self.stages]

    def _wait(self, stage: stages.Stage) -> importing.LateControlInputs:
        """The operations of a stage that wait for the element without depending on it."""
        if not self._waits_for:  # most programs, such as those of hooks and savers
            return importing.LateControlInputs()
        before = graph_ops.ancestors([t.op for t in self._waits_for], self.stops)
        late: list[str] = []
        used: set[Key] = set()  # handles that tensors of `waits_for` need later in the stage
        for op in reversed(stage.ops):
            taken = graph_ops.resources(op)
            if op in before:
                used.update(taken)
            elif taken and graph_ops.has_effect(op) and used.isdisjoint(taken):
                late.append(op.name)  # others run before the awaited tensors
        if not late:
            return importing.LateControlInputs()
        ops = set(stage.ops)
        return importing.LateControlInputs(
            late=tuple(reversed(late)),
            inside=tuple(dict.fromkeys(t.op.name for t in self._waits_for if t.op in ops)),
            given=tuple(t for t in self._waits_for if t.op in self._given),
        )

    def written_handles(self) -> list[tf.Operation]:
        """The variable handles that an op other than a read takes."""
        handles = set(self.handles)
        written = {
            t.op
            for op in self.ops
            if op.type not in graph_ops.READERS
            for t in op.inputs
            if t.op in handles
        }
        return graph_ops.in_creation_order(written)

    def unfed_placeholders(self) -> list[tf.Operation]:
        """Placeholders that the program needs and does not list among its feeds."""
        return [op for op in self.ops if op.type == "Placeholder"]

    def definitions(self) -> list[bytes]:
        """The program's stages as bytes, the same for the same program in another process."""
        return [
            self._graph_def(index).SerializeToString(deterministic=True)
            for index in range(len(self.stages))
        ]

    def signature(self, state_rewrite: StateRewrite | None = None) -> Hashable | None:
        """The key that programs of the same computation share; None for several replicas.

        None also where a kernel keeps state, such as a seeded random op that is not rewritten: a
        shared function would continue from the state that another program left.
        """
        if self.replicas > 1 or self.native_collectives:
            return None
        graph_defs = [self._graph_def(index) for index in range(len(self.stages))]
        if any(stage_functions.keeps_state(each, state_rewrite) for each in graph_defs):
            return None
        digest = hashlib.sha256()
        for definition in map(graph_def.canonical, graph_defs):
            digest.update(b"%d " % len(definition) + definition)
        names = [
            *map(_names, (self._fed, self._results)),
            [(op.name, op.type, _signature_of_variable(op)) for op in self.handles],
            [[op.name for op in wanted] for wanted in self._wanted],
            [handle is not None for handle in self._read_last],
            [sorted((name, t.name) for name, t in feeds.items()) for feeds in self._awaited],
            [(wait.late, wait.inside, _names(wait.given)) for wait in self._waits],
            [
                (_names(stage.inputs), _names(stage.outputs), [op.name for op in stage.collectives])
                for stage in self.stages
            ],
        ]
        digest.update(repr(names).encode())
        return digest.digest()

    def _graph_def(self, index: int) -> tf.compat.v1.GraphDef:
        replica = None if self.native_collectives else self._replica_of(index)
        cached = self._graph_defs.get((index, replica))
        if cached is None:
            ops = self.stages[index].ops
            if not self.native_collectives:
                collectives.refuse_nested(self.graph, ops, self.replicas)
            kept = {op.name for op in self._wanted[index]}
            kept |= {t.op.name for t in self.stages[index].outputs}
            kept.update(self._waits[index].inside)
            cached = graph_def.subgraph_def(
                self.graph,
                ops,
                replica=replica,
                rewrites={**replicated_ops.rewrites(replica), **self._rewrites},
                instead={
                    **simplify.repeated_reads(ops, kept),
                    **graph_def.repeated_constants(self.graph, ops, kept),
                },
                awaited=self._awaited[index],
            )
            self._graph_defs[index, replica] = cached
        return cached

    def _replica_of(self, index: int) -> int:
        """The id of the calling replica; 0 where the stage is the same for all replicas."""
        if self.replicas > 1 and index not in self._differs:
            ops = self.stages[index].ops
            self._differs[index] = graph_def.differs_by_replica(self.graph, ops)
        return _replica_id(self.replicas) if self._differs.get(index) else 0

    def __call__(
        self,
        values: Sequence[tf.Tensor],
        handle_of: HandleOf,
        state_rewrite: StateRewrite | None = None,
        after: Sequence[tf.Operation] = (),
    ) -> list[tf.Tensor]:
        """Builds the program from one value per feed; returns one value per fetch.

        `handle_of` returns the resource handle for a handle op of the captured graph. The program
        runs after the operations `after`.
        """
        environment = {
            key(copy): value
            for copies, value in zip(self._copies, values, strict=True)
            for copy in copies
        }
        under_construction = tf.compat.v1.get_default_graph()
        for op in self.handles:
            environment[op.name, 0] = under_construction.capture(handle_of(op))
        done: list[tf.Operation] = []
        for index, stage in enumerate(self.stages):
            done += self._import(index, environment, [*after, *done], state_rewrite)
            values = [environment[key(op.inputs[0])] for op in stage.collectives]
            received = collectives.exchange(stage.collectives, values, self.replicas)
            environment.update(((op.name, 0), value) for op, value in received.items())
        if not self.native_collectives:
            importing.must_run(done)
        with tf.control_dependencies(done):
            results = [tf.identity(environment[key(t)]) for t in self._results]
        with tf.control_dependencies([*done, *results]):
            return [
                value
                if handle is None
                else tf.raw_ops.ReadVariableOp(resource=environment[key(handle)], dtype=value.dtype)
                for value, handle in zip(results, self._read_last, strict=True)
            ]

    def _import(
        self,
        index: int,
        environment: dict[Key, tf.Tensor],
        after: list[tf.Operation],
        state_rewrite: StateRewrite | None,
    ) -> list[tf.Operation]:
        """Builds a stage that runs after the operations `after`; returns the ops that must run."""
        stage = self.stages[index]
        definition = self._graph_def(index)
        added: Mapping[str, tf.Tensor] = {}
        if state_rewrite is not None:
            definition, added = state_rewrite.apply(definition)
        functions.register_functions(definition)
        inputs = self._inputs(index, environment, added)
        wait = self._waits[index]
        given = [environment[key(t)] for t in wait.given]
        if self._is_shared(index, state_rewrite):
            function = self._function(index, definition, inputs)
            with tf.control_dependencies([*after, *given]):
                *returned, ran = function(inputs.values())
            must_run = [ran.op]
        else:
            wanted = [op.name for op in self._wanted[index]]
            elements = [*(t.name for t in stage.outputs), *wanted]
            found = importing.imported(definition, inputs, elements, after, wait, given)
            returned, must_run = found[: len(stage.outputs)], found[len(stage.outputs) :]
        environment.update(zip(map(key, stage.outputs), returned, strict=True))
        return must_run

    def _inputs(
        self, index: int, environment: dict[Key, tf.Tensor], added: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        under_construction = tf.compat.v1.get_default_graph()
        stage = self.stages[index]
        replica = 0 if self.native_collectives else self._replica_of(index)
        others = replicated_ops.of_others(stage.ops, replica)
        inputs = {t.name: environment[key(t)] for t in stage.inputs if key(t) not in others}
        for name, feed in self._awaited[index].items():
            inputs[f"^{name}"] = under_construction.capture(environment[key(feed)])
        for name, tensor in added.items():
            inputs[name] = under_construction.capture(tensor)
        return inputs

    def _is_shared(self, index: int, state_rewrite: StateRewrite | None) -> bool:
        """Whether all replicas call one function for a stage: see `stage_functions`."""
        context = tf.distribute.get_replica_context()
        if self.replicas == 1 or self.native_collectives or context is None:
            return False
        if placement.common_device(context.strategy) is None:
            return False
        if index not in self._shared:
            ops = self.stages[index].ops
            knows_id = graph_def.has_types(self.graph, ops, graph_def.BY_REPLICA)
            self._shared[index] = not knows_id and stage_functions.is_shared(
                self._graph_def(index), state_rewrite
            )
        return self._shared[index]

    def _function(
        self, index: int, definition: graph_def.GraphDef, inputs: Mapping[str, tf.Tensor]
    ) -> stage_functions.StageFunction:
        known = (index, *((t.dtype, repr(t.shape)) for t in inputs.values()))
        if known not in self._functions:
            outputs = [t.name for t in self.stages[index].outputs]
            wanted = [op.name for op in self._wanted[index]]
            self._functions[known] = stage_functions.StageFunction(
                definition, inputs, outputs, wanted
            )
        return self._functions[known]


def _given(feeds: Sequence[tf.Tensor]) -> dict[tf.Operation, tf.Tensor]:
    """The operations of the feeds, each with its feed.

    For feeds that are parts of an element's composites, this includes the iterator's operation.
    """
    given = {t.op: t for t in feeds}
    for feed in feeds:
        op = feed.op
        while len(op.inputs) == 1 and op.type in _OF_COMPOSITES:
            op = op.inputs[0].op
        if op.type == "IteratorGetNext":
            given.setdefault(op, feed)
    return given


def _names(tensors: Sequence[tf.Tensor]) -> list[str]:
    return [tensor.name for tensor in tensors]


def _signature_of_variable(op: tf.Operation) -> tuple[str, ...]:
    if not graph_ops.is_variable_handle(op):
        return ()
    return str(op.get_attr("dtype")), str(tensor_shape.TensorShape(op.get_attr("shape")))


def _replica_id(replicas: int) -> int:
    """The id of the calling CPU or GPU replica; 0 for a sole replica, and for the host."""
    context = tf.distribute.get_replica_context()
    if replicas == 1 or context is None:
        return 0
    return int(tf.get_static_value(context.replica_id_in_sync_group))
