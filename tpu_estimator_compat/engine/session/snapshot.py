"""A snapshot of a saver's variables, from which a checkpoint can be written later.

Nothing is copied here. The tensors share the variables' buffers; a step that updates a variable
while its tensor is held makes a new buffer first. So a step pays for the copy of what it updates,
and only while the checkpoint is being written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import key
from tpu_estimator_compat.engine.session.graph_session import GraphSession
from tpu_estimator_compat.engine.step.host_function import HostFunction
from tpu_estimator_compat.tf_internals import compat, tf_session


class SaveFunctions:
    """The two halves of a saver: reading what it saves, and writing that.

    Args:
      session: the session whose variables are saved.
      saver_def: of the saver, after it was built.
    """

    def __init__(self, session: GraphSession, saver_def: Any):
        graph, store = session.graph, session.store
        result = graph.as_graph_element(saver_def.save_tensor_name)
        filename = graph.as_graph_element(saver_def.filename_tensor_name)
        saves = [op for op in graph_ops.ancestors([result.op], ()) if op.type == "SaveV2"]
        tensors = {key(t): t for op in saves for t in op.inputs[3:]}
        self.graph = graph
        self.saver_def = saver_def
        self.bytes = sum(_size(t) for t in tensors.values())
        self._read = HostFunction(graph, store, [*tensors.values()], [], [], reads_all=True)
        self._write = HostFunction(graph, store, [result], [], [filename, *tensors.values()])

    def snapshot(self) -> Snapshot:
        """The values of now."""
        return Snapshot(self, self._read.tensors([]))

    def write(self, filename: str, values: list[tf.Tensor]) -> bytes:
        """Writes values that were read before; returns the checkpoint's name."""
        [name] = self._write([np.asarray(filename, object), *values])
        return compat.as_bytes(name)


class Snapshot(tf_session.SessionInterface):
    """A session for one `Saver.save`: it can save what was read, and nothing else.

    Args:
      functions: made it.
      values: the values read.
    """

    def __init__(self, functions: SaveFunctions, values: list[tf.Tensor]):
        self._functions = functions
        self._values = values

    @property
    def graph(self) -> tf.Graph:
        return self._functions.graph

    def run(self, fetches: Any, feed_dict: Any = None, options=None, run_metadata=None) -> bytes:
        """Saves: `fetches` and the one fed tensor must be those of the saver."""
        del options, run_metadata
        saver_def = self._functions.saver_def
        [(fed, filename)] = feed_dict.items()
        if (fetches, fed) != (saver_def.save_tensor_name, saver_def.filename_tensor_name):
            raise ValueError(f"A snapshot can only be saved; asked for {fetches} given {fed}.")
        return self._functions.write(filename, self._values)


def _size(tensor: tf.Tensor) -> int:
    """Bytes of a tensor of known shape; 0 for others, such as a hash table's."""
    if tensor.dtype in (tf.string, tf.variant, tf.resource) or not tensor.shape.is_fully_defined():
        return 0
    return int(tensor.shape.num_elements() * tensor.dtype.size)
