"""What a TPU's runtime makes of a replicated computation: it runs once on each core.

The ops that TensorFlow has marked (`_tpu_replicate`) are taken out of the graph that they were
built in, and imported once per replica into the graph around it, on the logical CPU that stands for
the replica's core. Where replicas exchange values the computation is cut, the values meet, and it
goes on. Branches and loops that exchange something are built once for all replicas, which have to
agree on the way: on a TPU they would wait for each other for ever if they did not.

This knows nothing of the package that it judges.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import func_graph, function_def_to_graph, ops, smart_cond

from support.simulated_tpu.devices import host_of
from tpu_estimator_compat.engine.jax.lowering.step_module import StepModule

EXCHANGES = frozenset({"CrossReplicaSum", "AllToAll", "CollectivePermute"})
OF_THE_REWRITE = frozenset({"TPUReplicateMetadata", "NoOp"})
OUTSIDE = "_xla_outside_compilation"
_OF_THE_COMPUTATION = (
    "_tpu_replicate",
    "_tpu_input_identity",
    "_tpu_output_identity",
    "_class",
    "_pivot_for_cluster",
)

Environment = dict[str, Any]
"""Values by the names of the tensors that they stand for."""


@dataclasses.dataclass
class Cluster:
    """What was seen of one replicated computation.

    Attributes:
      name: TensorFlow's name for it.
      replicas: how many cores or groups of cores run it.
      op_types: types of its ops.
      problems: what a TPU would refuse.
      on_host: types of its ops that the host runs: those marked by `outside_compilation`, and those
        that TensorFlow moves there because cores have no kernel.
      module: what XLA makes of one replica; None where it was not asked.
    """

    name: str
    replicas: int
    op_types: set[str]
    problems: list[str] = dataclasses.field(default_factory=list)
    on_host: set[str] = dataclasses.field(default_factory=set)
    module: StepModule | None = None


def cluster_of(op: tf.Operation) -> str | None:
    attr = op.node_def.attr
    return attr["_tpu_replicate"].s.decode() if "_tpu_replicate" in attr else None


class Expansion:
    """Builds a computation's ops once per replica into the graph around it."""

    def __init__(
        self,
        outer: tf.Graph,
        program: tf.Graph,
        strategy: tf.distribute.TPUStrategy,
        *,
        packs: dict[str, list[Any]],
        replicas: int,
    ):
        self.outer, self.program, self.replicas = outer, program, replicas
        self._packs = packs
        devices = list(strategy.extended.worker_devices)
        # A step on one replica of a larger TPU, as TensorFlow's initializers of variables are.
        self.devices = devices if len(devices) == replicas else devices[:1] * replicas
        self._captured = {id(inner): outside for outside, inner in program.captures}
        self._all = program.get_operations()
        self.ops = [op for op in self._all if cluster_of(op)]
        name = cluster_of(self.ops[0]) or ""
        self.cluster = Cluster(name, replicas, {op.type for op in self.ops})
        self.host_ops = {op.name for op in self.ops if OUTSIDE in op.node_def.attr}
        self._outside: Environment = {}
        self._inside: list[Environment] = [{} for _ in range(replicas)]

    def pack(self, tensor: tf.Tensor) -> list[Any] | None:
        """The variables, one per replica, of whose handles `tensor` stands for one."""
        return self._packs.get(f"{id(self.program)}/{tensor.name}")

    def source(self, tensor: tf.Tensor) -> Any:
        """What `tensor` is outside of the graph that the computation was built in."""
        return self._captured.get(id(tensor), tensor)

    def build(self, wanted: Sequence[Any]) -> list[Any]:
        """The values of the tensors `wanted` of the program, in the graph around.

        What is no tensor is given back as None.
        """
        for op in self._all:
            if cluster_of(op) is None:
                self._before(op)
        used = {t.name for op in self._all if cluster_of(op) is None for t in op.inputs}
        used |= {t.name for t in wanted if isinstance(t, tf.Tensor)}
        run = _Lockstep(self.devices, self.host_ops, self._outside)
        run(self.ops, self._inside, used)
        for op in self._all:
            if cluster_of(op) is None:
                self._after(op)
        return [self._outside[t.name] if isinstance(t, tf.Tensor) else None for t in wanted]

    # Ops of the program that belong to no computation: its inputs and outputs.

    def _before(self, op: tf.Operation) -> None:
        if op.type == "TPUReplicatedInput":
            self._replicated_input(op)
        elif op.type == "Placeholder" and id(op.outputs[0]) in self._captured:
            self._outside[op.outputs[0].name] = self._captured[id(op.outputs[0])]
        else:
            self._copy(op)

    def _after(self, op: tf.Operation) -> None:
        if op.type == "TPUReplicatedOutput":
            for replica, output in enumerate(op.outputs):
                self._outside[output.name] = self._inside[replica][op.inputs[0].name]
        elif op.type != "TPUReplicatedInput":
            self._copy(op)

    def _copy(self, op: tf.Operation) -> None:
        ready = all(t.name in self._outside for t in op.inputs)
        done = all(t.name in self._outside for t in op.outputs)
        if done or not ready or op.type == "TPUCompilationResult":
            return
        graph_def = _graph_def([op], lambda _: "")
        with self.outer.as_default():
            made = tf.graph_util.import_graph_def(
                graph_def,
                input_map={t.name: _captured(self._outside[t.name]) for t in op.inputs},
                return_elements=[t.name for t in op.outputs],
                name="tpu_outside",
            )
        self._outside.update({t.name: new for t, new in zip(op.outputs, made, strict=True)})

    def _replicated_input(self, op: tf.Operation) -> None:
        [output] = op.outputs
        parts = self.pack(output)
        for replica, values in enumerate(self._inside):
            if parts is not None:
                part = parts[replica if len(parts) > 1 else 0]
                values[output.name] = self.outer.capture(getattr(part, "handle", part))
            else:
                given = op.inputs[replica if len(op.inputs) > 1 else 0]
                values[output.name] = self._outside[given.name]


class _Lockstep:
    """Runs ops on all replicas side by side, exchange by exchange."""

    def __init__(self, devices: Sequence[str], host_ops: set[str], shared: Environment):
        self._devices = devices
        self._host_ops = host_ops
        self._shared = shared

    def __call__(
        self,
        operations: Sequence[tf.Operation],
        values: Sequence[Environment],
        wanted: Iterable[str],
    ) -> None:
        """Builds `operations`, of one graph, into the default graph.

        Args:
          operations: in any order; inputs that none of them makes are in `values`.
          values: what is known, per replica; the outputs are added.
          wanted: names of the outputs that somebody else wants.
        """
        wanted = set(wanted)
        after: list[list[Any]] = [[] for _ in values]
        for ordinary, exchanges in _stages(operations):
            later = {t.name for op in operations if op not in ordinary for t in op.inputs}
            if ordinary:
                self._run(ordinary, values, wanted | later, after)
            for op in exchanges:
                self._exchange(op, values)

    def _value(self, known: Environment, tensor: tf.Tensor) -> Any:
        return _captured(known[tensor.name] if tensor.name in known else self._shared[tensor.name])

    def _run(
        self,
        operations: set[tf.Operation],
        values: Sequence[Environment],
        wanted: set[str],
        after: Sequence[list[Any]],
    ) -> None:
        inside = _ordered(operations)
        names = {op.name for op in inside}
        feeds = {t.name: t for op in inside for t in op.inputs if t.op.name not in names}
        fetches = [t.name for op in inside for t in op.outputs if t.name in wanted]
        effects = [op.name for op in inside if not op.outputs or op.op_def.is_stateful]
        graph = ops.get_default_graph()
        for replica, known in enumerate(values):
            device = self._devices[replica]
            graph_def = _graph_def(
                inside, lambda op, d=device: host_of(d) if op.name in self._host_ops else d
            )
            already = len(graph.get_operations())
            with ops.device(None):
                returned = tf.graph_util.import_graph_def(
                    graph_def,
                    input_map={n: self._value(known, t) for n, t in feeds.items()},
                    return_elements=[*fetches, *effects],
                    name=f"tpu_replica_{replica}",
                )
            for op in graph.get_operations()[already:]:
                op._add_control_inputs(after[replica])
            known.update(zip(fetches, returned, strict=False))
            after[replica].extend(returned[len(fetches) :])

    def _exchange(self, op: tf.Operation, values: Sequence[Environment]) -> None:
        if op.type in EXCHANGES:
            given = [self._value(known, op.inputs[0]) for known in values]
            results = [[value] for value in _EXCHANGE[op.type](op, given, self._devices)]
        elif op.type in ("If", "StatelessIf"):
            results = self._branch(op, values)
        elif op.type in ("While", "StatelessWhile"):
            results = self._loop(op, values)
        elif op.type in ("PartitionedCall", "StatefulPartitionedCall"):
            given = [[self._value(known, t) for t in op.inputs] for known in values]
            results = self._call(op, "f", given)
        else:
            raise NotImplementedError(f"{op.name}: an exchange inside a function of {op.type}")
        for known, outputs in zip(values, results, strict=True):
            known.update({t.name: v for t, v in zip(op.outputs, outputs, strict=True)})

    def _call(self, op: tf.Operation, attr: str, given: Sequence[Sequence[Any]]) -> list[list[Any]]:
        body = _function(op, attr)
        values = [{t.name: v for t, v in zip(body.inputs, inputs, strict=True)} for inputs in given]
        own = {t.op for t in body.inputs}
        inside = [o for o in body.get_operations() if o not in own]
        # Placement and marks of a function's ops are its own affair: all run with the replica.
        _Lockstep(self._devices, set(), {})(inside, values, {t.name for t in body.outputs})
        return [[self._value(known, t) for t in body.outputs] for known in values]

    def _branch(self, op: tf.Operation, values: Sequence[Environment]) -> list[list[Any]]:
        choice = _agreed(op, [self._value(known, op.inputs[0]) for known in values])
        given = [[self._value(known, t) for t in op.inputs[1:]] for known in values]

        def build(attr: str) -> Callable[[], list[Any]]:
            return lambda: [tf.constant(0), *_flat(self._call(op, attr, given))]

        _, *flat = tf.cond(tf.cast(choice, tf.bool), build("then_branch"), build("else_branch"))
        return _per_replica(flat, len(values))

    def _loop(self, op: tf.Operation, values: Sequence[Environment]) -> list[list[Any]]:
        given = [[self._value(known, t) for t in op.inputs] for known in values]
        # Handles do not change from turn to turn, and cannot be a loop's variables.
        varying = [i for i, t in enumerate(op.inputs) if t.dtype != tf.resource]

        def whole(flat: Sequence[Any]) -> list[list[Any]]:
            turns = [list(inputs) for inputs in given]
            for inputs, now in zip(turns, _per_replica(flat, len(values)), strict=True):
                for i, value in zip(varying, now, strict=True):
                    inputs[i] = value
            return turns

        def goes_on(*flat: Any) -> Any:
            return _agreed(op, _flat(self._call(op, "cond", whole(flat))))

        def turn(*flat: Any) -> list[Any]:
            return _flat(
                [[outs[i] for i in varying] for outs in self._call(op, "body", whole(flat))]
            )

        flat = tf.while_loop(
            goes_on,
            turn,
            _flat([[inputs[i] for i in varying] for inputs in given]),
            shape_invariants=[op.outputs[i].shape for _ in values for i in varying],
        )
        return whole(flat)


def _captured(value: Any) -> Any:
    """`value` in the graph under construction; it may be eager, or of a graph around."""
    graph = ops.get_default_graph()
    eager = isinstance(value, ops.EagerTensor)
    return value if not eager and value.graph is graph else graph.capture(value)


def _agreed(op: tf.Operation, choices: Sequence[Any]) -> Any:
    """The first replica's choice of a way, which must be everybody's."""
    same = tf.reduce_all(tf.equal(tf.stack(choices), choices[0]))
    words = (
        f"(simulated TPU) replicas take different ways at {op.name}, within which they exchange "
        "values: on a TPU they would wait for each other for ever"
    )
    with tf.control_dependencies([tf.debugging.Assert(same, [words])]):
        return tf.identity(choices[0])


def _cross_replica_sum(
    op: tf.Operation, values: Sequence[Any], devices: Sequence[str]
) -> list[Any]:
    results: dict[int, Any] = {}
    for group in groups_of(op, len(values)):
        with ops.device(devices[group[0]]):
            total = tf.add_n([values[r] for r in group])
        for r in group:
            with ops.device(devices[r]):
                results[r] = tf.identity(total)
    return [results[r] for r in range(len(values))]


def _all_to_all(op: tf.Operation, values: Sequence[Any], devices: Sequence[str]) -> list[Any]:
    concat, split = op.get_attr("concat_dimension"), op.get_attr("split_dimension")
    pieces = [tf.split(value, op.get_attr("split_count"), split) for value in values]
    results: dict[int, Any] = {}
    for group in groups_of(op, len(values)):
        for place, r in enumerate(group):
            with ops.device(devices[r]):
                results[r] = tf.concat([pieces[other][place] for other in group], concat)
    return [results[r] for r in range(len(values))]


def _permute(op: tf.Operation, values: Sequence[Any], devices: Sequence[str]) -> list[Any]:
    pairs = smart_cond.smart_constant_value(op.inputs[1]).tolist()  # a gradient's are computed
    sent = {target: values[source] for source, target in pairs}
    results = []
    for r, value in enumerate(values):
        with ops.device(devices[r]):
            results.append(tf.identity(sent[r]) if r in sent else tf.zeros_like(value))
    return results


_EXCHANGE = {
    "CrossReplicaSum": _cross_replica_sum,
    "AllToAll": _all_to_all,
    "CollectivePermute": _permute,
}


def groups_of(op: tf.Operation, replicas: int) -> list[list[int]]:
    """Among which replicas a collective exchanges values; one group of all if it does not say."""
    assignment = tf.get_static_value(op.inputs[1])
    if assignment is None or not np.size(assignment):
        return [list(range(replicas))]
    return np.atleast_2d(assignment).tolist()


def _stages(
    operations: Sequence[tf.Operation],
) -> list[tuple[set[tf.Operation], list[tf.Operation]]]:
    """Ordinary ops between exchanges, and the exchanges that follow them."""
    member = set(operations)
    exchanging = {op for op in operations if op.type in EXCHANGES or _calls_exchange(op)}
    levels: dict[tf.Operation, int] = {}
    for op in _ordered(operations):
        before = [*(t.op for t in op.inputs), *op.control_inputs]
        levels[op] = max((levels[b] + (b in exchanging) for b in before if b in member), default=0)
    return [
        (
            {op for op in operations if levels[op] == level and op not in exchanging},
            [op for op in operations if levels[op] == level and op in exchanging],
        )
        for level in range(max(levels.values(), default=0) + 1)
    ]


def _ordered(operations: Iterable[tf.Operation]) -> list[tf.Operation]:
    """An order in which `operations` can run; automatic control dependencies may point back."""
    member = set(operations)
    done: dict[tf.Operation, None] = {}
    for root in operations:
        stack = [root]
        while stack:
            op = stack[-1]
            before = [*(t.op for t in op.inputs), *op.control_inputs]
            missing = [b for b in before if b in member and b not in done]
            if missing:
                stack += missing
            else:
                done[stack.pop()] = None
    return list(done)


def _called_functions(node: Any) -> list[str]:
    found = []
    for attr in node.attr.values():
        if attr.WhichOneof("value") == "func":
            found.append(attr.func.name)
        found += [f.name for f in attr.list.func]
    return found


def definition(graph: tf.Graph, name: str) -> Any:
    """The FunctionDef of a function that ops of `graph` call; None if nobody knows it."""
    while graph is not None:
        if function := graph._get_function(name):
            return function.cached_definition
        graph = getattr(graph, "outer_graph", None)
    return None


def called_bodies(graph: tf.Graph, nodes: Iterable[Any]) -> Iterator[Any]:
    """The FunctionDefs that nodes call, by themselves or by others, each once."""
    names, seen = [name for node in nodes for name in _called_functions(node)], set()
    while names:
        name = names.pop()
        body = None if name in seen else definition(graph, name)
        seen.add(name)
        if body is not None:
            yield body
            names += [name for node in body.node_def for name in _called_functions(node)]


def _calls_exchange(op: tf.Operation) -> bool:
    bodies = called_bodies(op.graph, [op.node_def])
    return any(node.op in EXCHANGES for body in bodies for node in body.node_def)


def _function(op: tf.Operation, attr: str) -> func_graph.FuncGraph:
    body = definition(op.graph, op.get_attr(attr).name)
    shapes = [t.shape for t in op.inputs]
    shapes = shapes[1:] if attr in ("then_branch", "else_branch") else shapes
    return function_def_to_graph.function_def_to_graph(body, input_shapes=shapes)


def _graph_def(operations: Sequence[tf.Operation], device_of: Callable[[Any], str]) -> Any:
    """The GraphDef of `operations` alone, each on the device that `device_of` gives."""
    names = {op.name for op in operations}
    made = tf.compat.v1.GraphDef()
    made.versions.producer = tf.version.GRAPH_DEF_VERSION
    for op in operations:
        node = made.node.add()
        node.CopyFrom(op.node_def)
        node.device = device_of(op)
        for name in _OF_THE_COMPUTATION:
            node.attr.pop(name, None)
        if op.type == "TPUReplicateMetadata":
            node.op = "NoOp"
            node.ClearField("attr")
        kept = [i for i in node.input if not i.startswith("^") or i[1:] in names]
        del node.input[:]
        node.input.extend(kept)
    made.library.function.extend(called_bodies(operations[0].graph, made.node))
    return made


def _flat(nested: Sequence[Sequence[Any]]) -> list[Any]:
    return [value for row in nested for value in row]


def _per_replica(flat: Sequence[Any], replicas: int) -> list[list[Any]]:
    share = len(flat) // replicas
    return [list(flat[r * share : (r + 1) * share]) for r in range(replicas)]
