"""The GraphDef of a part of a captured graph, ready for import under another graph.

Everything that nobody fetched (restore ops, init ops, eval-only updates) is left out and therefore
never runs, as under a TF1 session.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import tensorflow as tf

GraphDef = Any  # tf.compat.v1.GraphDef
NodeDef = Any  # tf.compat.v1.NodeDef
Rewrites = Mapping[str, Callable[[NodeDef], None]]

_SEED_STRIDE = 1_000_003  # seeds of ops that were made one after the other differ by a few


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


def subgraph_def(
    graph: tf.Graph,
    ops: Collection[tf.Operation],
    *,
    replica: int | None = None,
    rewrites: Rewrites | None = None,
    instead: Mapping[str, str] | None = None,
    awaited: Collection[str] = (),
) -> GraphDef:
    """The GraphDef of `ops` alone, ready for import under another graph.

    Device strings and colocation are dropped: where a legacy graph wanted its ops says nothing
    about the replica that runs them now. Control inputs from outside `ops` are dropped too, but
    for those of `awaited`; the caller orders the pieces.

    Args:
      graph: the captured graph.
      ops: operations of `graph`, in the order in which they are to be created.
      rewrites: by type of op, what changes a node of that type, in functions too.
      replica: which replica runs it: its random ops with seeds draw numbers of their own, and it
        knows its id, in functions too. None for devices that see to that themselves.
      instead: operations of one output to leave out, by name, with the one to take instead.
      awaited: names of operations that are not in `ops`; whoever imports the result maps those of
        them that are some operation's control inputs.

    Returns:
      A GraphDef with the needed functions of the graph's library.
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
        if node.op == "SummaryWriter":
            # A session had writers of its own. Here all graphs share a runtime, and a second
            # writer of the same name would write to the files of the first.
            node.attr["shared_name"].s += b"_%d" % source.serial
    functions = _reachable_functions(result.node, source.library)
    for function in functions:
        result.library.function.add().CopyFrom(function)
    names = {f.signature.name for f in functions}
    result.library.gradient.extend(g for g in source.library.gradient if g.function_name in names)
    rewrites = {**(rewrites or {}), **_of_replica(replica, result)}
    _rewrite(result.node, rewrites)
    _rewrite_functions(result, rewrites, "" if replica is None else f"_{replica}")
    return result


def _of_replica(replica: int | None, graph_def: GraphDef) -> Rewrites:
    """What makes nodes of `graph_def` those of one replica."""
    if replica is None:
        return {}
    draws = set()
    if replica:
        nodes = [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
        draws = {node.op for node in nodes if "seed2" in node.attr}
    return {
        **dict.fromkeys(draws, functools.partial(_offset_seed, replica * _SEED_STRIDE)),
        "XlaReplicaId": functools.partial(_make_constant, replica),
    }


def _offset_seed(offset: int, node: NodeDef) -> None:
    if node.attr["seed"].i or node.attr["seed2"].i:  # without seeds, each draws as it likes
        node.attr["seed2"].i += offset


def _make_constant(value: int, node: NodeDef) -> None:
    node.op = "Const"
    node.attr["dtype"].type = tf.int32.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.int32))


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
        for attr in node.attr.values():
            kind = attr.WhichOneof("value")
            if kind == "func":
                yield attr.func.name
            elif kind == "list":
                yield from (func.name for func in attr.list.func)


def _reachable_functions(nodes: Iterable[NodeDef], library: tf.compat.v1.GraphDef) -> list[NodeDef]:
    """FunctionDefs of `library` that `nodes` call, directly or not, by name."""
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
    """Rewrites nodes in the functions of a library, under new names that end in `mark`.

    The runtime knows the old names with their old bodies, so every function that changes, by what
    it holds or what it calls, gets another.
    """
    functions = {f.signature.name: f for f in graph_def.library.function}
    changed = {n for n, f in functions.items() if any(x.op in rewrites for x in f.node_def)}
    while True:
        callers = {n for n, f in functions.items() if changed & set(_function_names(f.node_def))}
        if callers <= changed:
            break
        changed |= callers
    if not changed:
        return
    suffix = "_".join(["", *sorted(rewrites)]) + mark
    for function in functions.values():
        ids = {
            f"{node.name}:id:0": f"{node.name}:output:0"
            for node in function.node_def
            if node.op == "XlaReplicaId"
        }
        _rewrite(function.node_def, rewrites)
        for name, output in function.ret.items():
            function.ret[name] = ids.get(output, output)
        for node in function.node_def:
            if ids:
                set_inputs(node, [ids.get(name, name) for name in node.input])
            _rename_functions(node, changed, suffix)
        if function.signature.name in changed:
            function.signature.name += suffix
    for node in graph_def.node:
        _rename_functions(node, changed, suffix)


def _rename_functions(node: NodeDef, names: set[str], suffix: str) -> None:
    if node.op in names:
        node.op += suffix
    for attr in node.attr.values():
        kind = attr.WhichOneof("value")
        called = [attr.func] if kind == "func" else attr.list.func if kind == "list" else ()
        for func in called:
            if func.name in names:
                func.name += suffix


def op_types(graph: tf.Graph) -> set[str]:
    """Types of all ops of `graph`, those in functions of its library included."""
    source = _nodes_of(graph)
    in_functions = {node.op for f in source.library.function for node in f.node_def}
    return {node.op for node in source.nodes.values()} | in_functions


def called_functions(op: tf.Operation) -> list[str]:
    """Names of the functions of the graph's library that `op` calls itself."""
    return [name for name in _function_names([op.node_def]) if name != op.type]


def functions_with(
    graph: tf.Graph, ops: Collection[tf.Operation], types: Collection[str]
) -> list[str]:
    """Names of functions that `ops` call, directly or not, and that hold an op of `types`."""
    source = _nodes_of(graph)
    functions = _reachable_functions((source.nodes[op.name] for op in ops), source.library)
    return [f.signature.name for f in functions if any(node.op in types for node in f.node_def)]
