"""A signature of a SavedModel as a program, whoever wrote it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.graph.graph_ops import is_variable_handle
from tpu_estimator_compat.tf_internals import SavedModelLoader
from tpu_estimator_compat.tools.to_keras.graph import Program, Weight
from tpu_estimator_compat.tools.to_keras.reading import read

DEFAULT = "serving_default"


def of_saved_model(
    path: str, signature: str | None = None, tags: Sequence[str] = ("serve",)
) -> Program:
    """Reads a signature with its weights; raises what `opened` does."""
    with opened(path, signature, tags) as (session, inputs, outputs):
        return read(session.graph, inputs, outputs, _weights(session.graph, session))


@contextlib.contextmanager
def opened(
    path: str, signature: str | None, tags: Sequence[str]
) -> Iterator[tuple[tf.compat.v1.Session, dict[str, tf.Tensor], dict[str, tf.Tensor]]]:
    """A session of a SavedModel, with the inputs and outputs of a signature, by name.

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
