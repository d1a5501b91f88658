"""A signature of a SavedModel as a program, whoever wrote it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.graph.graph_ops import is_variable_handle
from tpu_estimator_compat.tools.to_keras.graph import Program, Weight
from tpu_estimator_compat.tools.to_keras.reading import read


def of_saved_model(
    path: str, signature: str = "serving_default", tags: Sequence[str] = ("serve",)
) -> Program:
    """Reads a signature with its weights; raises what `opened` does."""
    with opened(path, signature, tags) as (session, inputs, outputs):
        return read(session.graph, inputs, outputs, _weights(session.graph, session))


@contextlib.contextmanager
def opened(
    path: str, signature: str, tags: Sequence[str]
) -> Iterator[tuple[tf.compat.v1.Session, dict[str, tf.Tensor], dict[str, tf.Tensor]]]:
    """A session of a SavedModel, with the inputs and outputs of a signature, by name.

    Raises ValueError where it has no graph with these tags, or no signature of that name.
    """
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
        try:
            meta = tf.compat.v1.saved_model.load(session, list(tags), user_files.readable(path))
        except RuntimeError as error:
            raise ValueError(f"{error} Name them by --tags.") from error
        if signature not in meta.signature_def:
            raise ValueError(
                f"{path} has no signature {signature!r}; it has {sorted(meta.signature_def)}. "
                "Name one by --signature."
            )
        chosen = meta.signature_def[signature]
        inputs = {k: graph.get_tensor_by_name(v.name) for k, v in chosen.inputs.items()}
        outputs = {k: graph.get_tensor_by_name(v.name) for k, v in chosen.outputs.items()}
        yield session, inputs, outputs


def _weights(graph: tf.Graph, session: tf.compat.v1.Session) -> dict[str, Weight]:
    trainable = {v.op.name for v in graph.get_collection("trainable_variables")}
    handles = [op for op in graph.get_operations() if is_variable_handle(op)]
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
