"""A signature of a SavedModel as a program, of any origin."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.graph.graph_ops import is_variable_handle
from tpu_estimator_compat.tf_internals import SavedModelLoader
from tpu_estimator_compat.tools.to_keras.graph import Program, Weight
from tpu_estimator_compat.tools.to_keras.reading import read

DEFAULT = "serving_default"
Tensors = dict[str, tf.Tensor]
Opened = tuple[tf.compat.v1.Session, Tensors, Tensors, frozenset[str]]


def of_saved_model(
    path: str, signature: str | None = None, tags: Sequence[str] = ("serve",)
) -> Program:
    """Reads a signature with its weights; raises what `opened` does."""
    with opened(path, signature, tags) as (session, inputs, outputs, trainable):
        program = read(session.graph, inputs, outputs, _weights(session, trainable))
        fill_tables(program, session)
        return program


def fill_tables(program: Program, session: tf.compat.v1.Session) -> None:
    """Gives the tables of a program their attributes "keys" and "values", arrays."""
    for node in program.nodes():
        if node.kind.startswith(("HashTable", "MutableHashTable")):
            handle = session.graph.get_tensor_by_name(f"{node.name}:0")
            dtypes = {"Tkeys": node.attrs["key_dtype"], "Tvalues": node.attrs["value_dtype"]}
            content = tf.raw_ops.LookupTableExportV2(table_handle=handle, **dtypes)
            keys, values = session.run(tuple(content))
            order = np.argsort(values, kind="stable")  # a table has none
            node.attrs["keys"], node.attrs["values"] = keys[order], values[order]


@contextlib.contextmanager
def opened(path: str, signature: str | None, tags: Sequence[str]) -> Iterator[Opened]:
    """A session of a SavedModel, the inputs and outputs of a signature, by name, and what trains.

    None stands for the only signature, or for "serving_default".
    Raises ValueError where it has no graph with these tags, or no signature of that name.
    """
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
        try:
            meta = SavedModelLoader(user_files.readable(path)).load(session, list(tags))
        except RuntimeError as error:
            raise ValueError(f"{error} Name them by --tags.") from error
        if signature is None:
            only = list(meta.signature_def) if len(meta.signature_def) == 1 else []
            signature = next(iter(only), DEFAULT)
        if signature not in meta.signature_def:
            raise ValueError(
                f"{path} has no signature {signature!r}; it has {sorted(meta.signature_def)}. "
                "Name one by --signature."
            )
        chosen = meta.signature_def[signature]
        inputs = {k: graph.get_tensor_by_name(v.name) for k, v in sorted(chosen.inputs.items())}
        outputs = {k: graph.get_tensor_by_name(v.name) for k, v in sorted(chosen.outputs.items())}
        yield session, inputs, outputs, _trainable(graph, meta)


def _trainable(graph: tf.Graph, meta: Any) -> frozenset[str]:
    """The names of the trainable variables, of a SavedModel of TensorFlow 1 or 2."""
    objects = [node.variable for node in meta.object_graph_def.nodes if node.HasField("variable")]
    collected = [v.op.name for v in graph.get_collection("trainable_variables")]
    return frozenset([*collected, *(each.name for each in objects if each.trainable)])


def _weights(session: tf.compat.v1.Session, trainable: frozenset[str]) -> dict[str, Weight]:
    handles = [op for op in session.graph.get_operations() if is_variable_handle(op)]
    found = {}
    for op in handles:
        tensor = op.outputs[0]
        if tensor.dtype == tf.resource:
            tensor = tf.raw_ops.ReadVariableOp(resource=tensor, dtype=op.get_attr("dtype"))
        value: np.ndarray = session.run(tensor)
        found[op.name] = Weight(
            op.name, value.shape, tensor.dtype.base_dtype.name, op.name in trainable, value
        )
    return found
