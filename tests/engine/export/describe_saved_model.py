"""What a SavedModel holds, as plain data: read here for both sides, so that one reader judges."""

import os
import re
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.saved_model import loader_impl


def files(path: str) -> list[str]:
    found = []
    for folder, _, names in os.walk(path):
        found += [os.path.relpath(os.path.join(folder, name), path) for name in names]
    return sorted(found)


def variables(path: str) -> dict[str, Any]:
    return checkpoint(os.path.join(path, "variables", "variables"))


def checkpoint(path: str) -> dict[str, Any]:
    reader = tf.train.load_checkpoint(path)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def graphs(path: str) -> dict[tuple[str, ...], Any]:
    parsed = loader_impl.parse_saved_model(path)
    return {tuple(sorted(g.meta_info_def.tags)): g for g in parsed.meta_graphs}


def signatures(graph: Any) -> dict[str, Any]:
    def side(infos: Any) -> dict[str, Any]:
        return {
            key: (
                info.name or _composite(info),
                tf.dtypes.as_dtype(info.dtype).name,
                None
                if info.tensor_shape.unknown_rank
                else [dim.size for dim in info.tensor_shape.dim],
            )
            for key, info in infos.items()
        }

    return {
        key: {"method": s.method_name, "inputs": side(s.inputs), "outputs": side(s.outputs)}
        for key, s in graph.signature_def.items()
    }


def _composite(info: Any) -> str:
    return str(info.coo_sparse or info.composite_tensor)


def collections(graph: Any) -> dict[str, list[str]]:
    return {key: [_text(item) for item in _items(c)] for key, c in graph.collection_def.items()}


def _items(collection: Any) -> list[Any]:
    kind = collection.WhichOneof("kind")
    return list(getattr(collection, kind).value) if kind else []


def _text(item: Any) -> str:
    if isinstance(item, bytes):
        found = re.findall(rb"[\w/.:-]{3,}", item)
        return b" ".join(found).decode()
    return str(item)


def nodes(graph: Any) -> dict[str, Any]:
    return {node.name: _node(node) for node in graph.graph_def.node}


def functions(graph: Any) -> list[Any]:
    """Bodies of the library's functions, without their names, which count calls of a process."""
    return sorted(
        (sorted(str(_node(n, names=False)) for n in f.node_def))
        for f in graph.graph_def.library.function
    )


def _node(node: Any, names: bool = True) -> dict[str, Any]:
    attributes = {key: _attribute(value) for key, value in sorted(node.attr.items())}
    inputs = list(node.input) if names else len(node.input)
    return {"op": node.op, "inputs": inputs, "attributes": attributes}


def _attribute(value: Any) -> str:
    if value.HasField("func"):
        return "function"
    if value.HasField("list") and value.list.func:
        return f"{len(value.list.func)} functions"
    copied = attr_value_pb2.AttrValue()
    copied.CopyFrom(value)
    return str(copied)


def difference(ours: Any, theirs: Any) -> list[str]:
    return [
        f"{key}: ours {ours.get(key)!r}\n    original {theirs.get(key)!r}"
        for key in sorted({*ours, *theirs})
        if ours.get(key) != theirs.get(key)
    ]
