"""A GraphDef as text, letter by letter as TensorFlow writes it, in a fraction of the time.

TensorFlow has Python's printer of protobuf go through every field. Protobuf's own prints the same,
but for the order of the entries of maps, and for numbers with a point.
"""

from __future__ import annotations

import functools
import os
import re
from typing import Any

import tensorflow as tf
from google.protobuf import text_format

from tpu_estimator_compat.engine.graph.graph_def import GraphDef, NodeDef
from tpu_estimator_compat.tf_internals import file_io

_PRINTED_OTHERWISE = re.compile(
    # A function's name has a map beside it; what begins so comes after the attributes; quotes
    # within a string are escaped by some versions.
    r"^( *(func {|f: |float_val: |double_val: |scomplex_val: |dcomplex_val: )|experimental_)"
    r"|'|\"[^\"\n]*\"[^\n]*\"",
    re.MULTILINE,
)
_ATTR = "\nattr {\n"  # with its end of line: no string has one within
_WRITES_ALL_DIGITS = tuple(map(int, tf.__version__.split(".")[:2])) < (2, 21)


def write_text(graph_def: GraphDef, path: str) -> None:
    """Writes what `tf.io.write_graph` writes; the file is there at once, or not at all."""
    file_io.recursive_create_dir(os.path.dirname(path))
    file_io.atomic_write_string_to_file(path, text_of(graph_def))


def text_of(graph_def: GraphDef) -> str:
    """The text that `tf.io.write_graph` writes."""
    if not _prints_alike():
        return _printed_by_python(graph_def)
    rest = type(graph_def)()
    rest.CopyFrom(graph_def)
    del rest.node[:]
    nodes = "".join(map(_block, graph_def.node))
    return nodes + _printed_by_python(rest)


@functools.cache
def _prints_alike() -> bool:
    """Whether protobuf's own printer writes what Python's does: no release of it promises that."""
    sample = tf.compat.v1.NodeDef(name="sample", op="Const", input=["a", "^b"])
    sample.attr["shape"].shape.dim.add().size = 2
    sample.attr["dtype"].type = tf.float32.as_datatype_enum
    sample.attr["_class"].list.s.append(b'loc:@"sample"\n\xff')
    return _text_of(sample) == _printed_by_python(sample)


def _block(node: NodeDef) -> str:
    """A node as a field of its graph."""
    lines = _text_of(node).replace("\n", "\n  ")
    return f"node {{\n  {lines[:-2]}}}\n"


def _text_of(node: NodeDef) -> str:
    """The text of a node, its attributes in the order of their names."""
    text = str(node)
    if _PRINTED_OTHERWISE.search(text):
        return _printed_by_python(node)
    head, *attrs = text[:-1].split(_ATTR)
    return _ATTR.join((head, *sorted(attrs))) + "\n"


def _printed_by_python(message: Any) -> str:
    options = {"float_format": ""} if _WRITES_ALL_DIGITS else {}
    return text_format.MessageToString(message, **options)
