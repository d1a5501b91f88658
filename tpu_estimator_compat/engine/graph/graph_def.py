"""The GraphDef of a part of a captured graph, for import into another graph.

As in a TF1 session, ops that nothing fetches (restore ops, init ops, eval-only updates) are left
out, and so never run.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops

GraphDef = Any  # tf.compat.v1.GraphDef
NodeDef = Any  # tf.compat.v1.NodeDef
Rewrites = Mapping[str, Callable[[NodeDef], None]]

_SEED_STRIDE = 1_000_003  # larger than differences between the seeds of a graph
_SMALL_CONSTANT = 1024  # bytes; TF1 repeated shapes, axes and scalars
_NUMBERED = ("_gradient_op_type", "forward_function_name", "backward_function_name")
_OUTPUTS = {"XlaReplicaId": ("id",), "Unique": ("y", "idx"), "TPUReplicatedOutput": ("outputs",)}
"""Output names of op types with rewrites; the replacements' outputs are named `output`."""
BY_REPLICA = frozenset({"XlaReplicaId", "TPUReplicatedInput"})
"""Types of ops whose value differs by replica."""
_FILLING = frozenset({"Fill", "ZerosLike", "OnesLike"})
_OF_CONSTANTS = frozenset({"dtype", "value", "_output_shapes", "_class"})


class _NodeDefs:
    """NodeDefs of a graph by op name, read again when the graph has grown."""

    _count = itertools.count()

    def __init__(self) -> None:
        self.serial = next(self._count)
        self.version = -1
        self.nodes: dict[str, NodeDef] = {}
        self.library: Any = None
        self.versions: Any = None


_node_defs: weakref.WeakKeyDictionary[tf.Graph, _NodeDefs] = weakref.WeakKeyDictionary()


def _nodes_of(graph: tf.Graph) -> _NodeDefs:
    cached = _node_defs.setdefault(graph, _NodeDefs())
    if cached.version != graph.version:
        graph_def = graph.as_graph_def(add_shapes=False)
        cached.nodes = {node.name: node for node in graph_def.node}
        cached.library = graph_def.library
        cached.versions = graph_def.versions
        cached.version = graph.version
    return cached


def serial(graph: tf.Graph) -> int:
    """A number that identifies a graph in this process."""
    return _nodes_of(graph).serial


def subgraph_def(
    graph: tf.Graph,
    ops: Collection[tf.Operation],
    *,
    replica: int | None = None,
    rewrites: Rewrites | None = None,
    instead: Mapping[str, str] | None = None,
    awaited: Collection[str] = (),
) -> GraphDef:
    """The GraphDef of `ops` and the functions that they need, for import into another graph.

    Drops device strings and colocation, which refer to the legacy graph's devices, and control
    inputs from outside `ops`, except from `awaited`; the caller orders the parts of the graph.

    Args:
      ops: operations in the order in which the import creates them.
      replica: index of the replica that runs the ops: seeded random ops draw different numbers on
        each, and `XlaReplicaId` is a constant. None where devices know their replica.
      rewrites: callables that change nodes, by op type; nodes in the library's functions too.
      instead: maps operations to leave out, each with one output, to their replacements, by name.
      awaited: names of operations outside `ops`; the import maps those that are control inputs.
    """
    source = _nodes_of(graph)
    names = {op.name for op in ops} | set(awaited)
    result = tf.compat.v1.GraphDef()
    result.versions.CopyFrom(source.versions)
    for op in ops:
        if instead and op.name in instead:
            continue
        node = result.node.add()
        node.CopyFrom(source.nodes[op.name])
        _detach(node, names)
        if instead:
            _rename_inputs(node, instead)
    _keep_values_apart(result.node)
    functions = _reachable_functions(result.node, source.library)
    for function in functions:
        result.library.function.add().CopyFrom(function)
    names = {f.signature.name for f in functions}
    result.library.gradient.extend(g for g in source.library.gradient if g.function_name in names)
    kept = _of_graph(source.serial, result)
    rewrites = {**kept, **(rewrites or {}), **_of_replica(replica, result)}
    _rewrite(result.node, rewrites)
    _rewrite_functions(result, rewrites, "" if replica is None else f"_{replica}")
    return result


def _keep_values_apart(nodes: Iterable[NodeDef]) -> None:
    """Gives large variables with equal initial values, such as slots, separate buffers.

    TensorFlow merges ops with equal inputs and attributes, and a variable keeps the buffer that it
    is assigned. The first updates would copy a shared buffer, and for a time need memory for one
    more copy. TensorFlow folds values below 10 MiB into constants anyway.
    """
    by_name = {node.name: node for node in nodes}
    for node in by_name.values():
        if node.op == "AssignVariableOp":
            value = by_name.get(node.input[1].split(":")[0])
            if value is not None and value.op in _FILLING:
                value.attr["_variable"].s = node.input[0].encode()


def repeated_constants(
    graph: tf.Graph, ops: Iterable[tf.Operation], kept: Collection[str]
) -> dict[str, str]:
    """Maps the name of each small constant that repeats an earlier one to the earlier one's name.

    A TF1 training step has thousands. Grappler finds them only after every replica has imported and
    placed them, and inferred their shapes. Constants in `kept` stay.
    """
    nodes = _nodes_of(graph).nodes
    first: dict[bytes, str] = {}
    repeated: dict[str, str] = {}
    for op in ops:
        if op.type != "Const" or op.control_inputs or op.name in kept:
            continue
        node = nodes[op.name]
        # Constants with further attributes, such as outside compilation's, are not equal.
        if node.ByteSize() > _SMALL_CONSTANT or not _OF_CONSTANTS.issuperset(node.attr):
            continue
        value = node.attr["value"].tensor.SerializeToString(deterministic=True)
        earlier = first.setdefault(value, op.name)
        if earlier != op.name:
            repeated[op.name] = earlier
    return repeated


def _of_replica(replica: int | None, graph_def: GraphDef) -> Rewrites:
    """Rewrites of random ops and `XlaReplicaId` in `graph_def` for one replica."""
    if replica is None:
        return {}
    draws = set()
    if replica:
        nodes = [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
        draws = {node.op for node in nodes if "seed2" in node.attr}
    return {
        **dict.fromkeys(draws, functools.partial(_offset_seed, replica * _SEED_STRIDE)),
        "XlaReplicaId": functools.partial(make_constant, value=replica, dtype=tf.int32),
    }


def differs_by_replica(graph: tf.Graph, ops: Iterable[tf.Operation]) -> bool:
    """Whether `subgraph_def` gives each replica different nodes for `ops`."""
    source = _nodes_of(graph)
    nodes = [source.nodes[op.name] for op in ops]
    functions = _reachable_functions(nodes, source.library)
    nodes += [node for function in functions for node in function.node_def]
    return any(node.op in BY_REPLICA or "seed2" in node.attr for node in nodes)


def _of_graph(number: int, graph_def: GraphDef) -> Rewrites:
    """Rewrites of nodes that find their state by name: in containers of a graph, as of a session.

    In the eager context's containers, elements would outlive a call.
    """

    def put_apart(node: NodeDef) -> None:
        node.attr["container"].s += b"graph%d" % number

    nodes = itertools.chain(graph_def.node, *(f.node_def for f in graph_def.library.function))
    kinds = {node.op for node in nodes if "container" in node.attr}
    return dict.fromkeys(filter(graph_ops.is_of_session, kinds), put_apart)


def _offset_seed(offset: int, node: NodeDef) -> None:
    if node.attr["seed"].i or node.attr["seed2"].i:  # without seeds, streams differ anyway
        node.attr["seed2"].i += offset


def make_constant(node: NodeDef, value: Any, dtype: tf.DType) -> None:
    node.op = "Const"
    node.attr.clear()
    node.attr["dtype"].type = dtype.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype))


def _rewrite(nodes: Iterable[NodeDef], rewrites: Rewrites) -> None:
    for node in nodes:
        if node.op in rewrites:
            rewrites[node.op](node)


def _detach(node: NodeDef, names: set[str]) -> None:
    node.device = ""
    node.attr.pop("_class", None)
    inputs = [i for i in node.input if not i.startswith("^") or i[1:] in names]
    if len(inputs) != len(node.input):
        set_inputs(node, inputs)


def _rename_inputs(node: NodeDef, instead: Mapping[str, str]) -> None:
    for i, name in enumerate(node.input):
        waits, bare = name[: name.startswith("^")], name.lstrip("^").removesuffix(":0")
        if bare in instead:
            node.input[i] = waits + instead[bare]


def set_inputs(node: NodeDef, inputs: list[str]) -> None:
    del node.input[:]
    node.input.extend(inputs)


def _function_names(node_defs: Iterable[NodeDef]) -> Iterable[str]:
    for node in node_defs:
        yield node.op
        yield from (func.name for func in called_by(node))


def called_by(node: NodeDef) -> Iterator[Any]:
    """Functions that a node's attributes name, as `NameAttrList`s, sorted by attribute."""
    if not graph_ops.kind_calls_functions(node.op):
        return
    kinds = {name: attr.WhichOneof("value") for name, attr in node.attr.items()}
    for name in sorted(name for name, kind in kinds.items() if kind in ("func", "list")):
        attr = node.attr[name]
        yield from [attr.func] if kinds[name] == "func" else attr.list.func


def _reachable_functions(nodes: Iterable[NodeDef], library: tf.compat.v1.GraphDef) -> list[Any]:
    """FunctionDefs of `library` that `nodes` call at any depth, sorted by name."""
    functions = {f.signature.name: f for f in library.function}
    if not functions:
        return []
    gradients = {g.function_name: g.gradient_func for g in library.gradient}
    wanted: set[str] = set()
    stack = [name for name in _function_names(nodes) if name in functions]
    while stack:
        name = stack.pop()
        if name in wanted:
            continue
        wanted.add(name)
        stack.extend(n for n in _function_names(functions[name].node_def) if n in functions)
        if name in gradients:
            stack.append(gradients[name])
    return [functions[name] for name in sorted(wanted)]


def _rewrite_functions(graph_def: GraphDef, rewrites: Rewrites, mark: str) -> None:
    """Rewrites nodes in a library's functions; changed functions get names that end in `mark`.

    The runtime knows the old bodies by the old names, so each function that changes, or calls a
    changed function, gets a new name.
    """
    functions = {f.signature.name: f for f in graph_def.library.function}
    types = {n: rewrites.keys() & {x.op for x in f.node_def} for n, f in functions.items()}
    changed = {name for name, found in types.items() if found}
    while True:
        callers = {n for n, f in functions.items() if changed & set(_function_names(f.node_def))}
        if callers <= changed:
            break
        changed |= callers
    if not changed:
        return
    suffix = "_".join(["", *sorted(set().union(*types.values()))]) + mark
    renamed = {name: name + suffix for name in changed}
    for function in functions.values():
        before = {node.name: node.op for node in function.node_def if node.op in _OUTPUTS}
        _rewrite(function.node_def, rewrites)
        outputs = _renamed_outputs(function.node_def, before)
        for name, output in function.ret.items():
            function.ret[name] = outputs.get(output, output)
        for node in function.node_def:
            if outputs:
                set_inputs(node, [outputs.get(name, name) for name in node.input])
            _rename_functions(node, renamed)
        if function.signature.name in changed:
            function.signature.name += suffix
    for node in graph_def.node:
        _rename_functions(node, renamed)


def _renamed_outputs(nodes: Iterable[NodeDef], before: Mapping[str, str]) -> dict[str, str]:
    """Maps old to new output names of nodes with a rewritten type, in functions' notation."""
    return {
        f"{node.name}:{output}:0": f"{node.name}:output:{index}"
        for node in nodes
        if node.name in before and node.op != before[node.name]
        for index, output in enumerate(_OUTPUTS[before[node.name]])
    }


def _rename_functions(node: NodeDef, names: Mapping[str, str]) -> None:
    node.op = names.get(node.op, node.op)
    for func in called_by(node):
        func.name = names.get(func.name, func.name)


def canonical(graph_def: GraphDef) -> bytes:
    """`graph_def` as bytes, equal for equal code captured twice in this process.

    Leaves out TensorFlow's numbers of functions and gradients, which count over all graphs.
    """
    if not graph_def.library.function and not any(map(_is_numbered, graph_def.node)):
        return graph_def.SerializeToString(deterministic=True)
    result = tf.compat.v1.GraphDef()
    result.CopyFrom(graph_def)
    functions = {f.signature.name: f for f in result.library.function}
    numbers: dict[str, str] = {}
    stack = [name for name in _function_names(result.node) if name in functions][::-1]
    while stack:
        name = stack.pop()
        if name not in numbers:
            numbers[name] = f"function_{len(numbers)}"
            called = _function_names(functions[name].node_def)
            stack += [other for other in called if other in functions][::-1]
    for node in [*result.node, *(n for f in functions.values() for n in f.node_def)]:
        _rename_functions(node, numbers)
        for attr in _NUMBERED:
            node.attr.pop(attr, None)
    for name, function in functions.items():
        function.signature.name = numbers.get(name, name)
        for attr in _NUMBERED:
            function.attr.pop(attr, None)
    result.library.function.sort(key=lambda function: function.signature.name)
    del result.library.gradient[:]  # gradients are in the graph already
    return result.SerializeToString(deterministic=True)


def _is_numbered(node: NodeDef) -> bool:
    return any(attr in node.attr for attr in _NUMBERED)


def called_functions(op: tf.Operation) -> list[str]:
    return [name for name in _function_names([op.node_def]) if name != op.type]


def functions_with(
    graph: tf.Graph, ops: Collection[tf.Operation], types: Collection[str]
) -> list[str]:
    """Names of functions that `ops` call at any depth, and that hold an op of `types`."""
    source = _nodes_of(graph)
    calls = (source.nodes[op.name] for op in ops if graph_ops.calls_functions(op))
    functions = _reachable_functions(calls, source.library)
    return [f.signature.name for f in functions if any(node.op in types for node in f.node_def)]


def has_types(graph: tf.Graph, ops: Collection[tf.Operation], types: Collection[str]) -> bool:
    return any(op.type in types for op in ops) or bool(functions_with(graph, ops, types))
