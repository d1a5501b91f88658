"""Writes checkpoints, for sessions, the saver hook of estimators, and Keras models.

TensorFlow's Saver builds operations that write a checkpoint, and runs them in a session. Where the
session runs them, `session_function` makes a `CheckpointWrite`, whose files appear at once, when
all are complete.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.config import RunConfig
from tpu_estimator_compat.engine.checkpoint.saving import appearing_at_once
from tpu_estimator_compat.engine.functions import op_errors
from tpu_estimator_compat.engine.functions.cancelling import cancelled_by
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.host_function import HostFunction, as_numpy
from tpu_estimator_compat.engine.step.random_streams import RandomStreams
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram
from tpu_estimator_compat.tf_internals import compat

SAVERS = tf.compat.v1.GraphKeys.SAVERS


def add_default_saver(
    graph: tf.Graph, config: RunConfig, scaffold: tf.compat.v1.train.Scaffold
) -> None:
    """Adds a saver with the config's settings to the graph, unless it has a saver."""
    if scaffold.saver or graph.get_collection(SAVERS):
        return
    saver = tf.compat.v1.train.Saver(
        sharded=True,
        max_to_keep=config.keep_checkpoint_max,
        keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
        defer_build=True,
        save_relative_paths=True,
    )
    graph.add_to_collection(SAVERS, saver)


def session_function(
    graph: tf.Graph,
    store: VariableStore,
    fetches: Sequence[tf.Tensor],
    targets: Sequence[tf.Operation],
    feeds: Sequence[tf.Tensor],
    streams: RandomStreams | None = None,
) -> Callable[[Sequence[Any]], list[Any]]:
    """A function from values of `feeds` to values of `fetches`, which also runs `targets`.

    `streams`: see `HostFunction`.
    """
    function = HostFunction(graph, store, fetches, targets, feeds, streams=streams)
    filename = _filename_feed(function.program)
    return function if filename is None else CheckpointWrite(function, filename)


def _filename_feed(program: ReplicaProgram) -> int | None:
    """Index of the feed with the checkpoint's name, if the program saves."""
    prefixes = [op.inputs[0].op for op in program.ops if op.type == "SaveV2"]
    names = {op.name for op in graph_ops.ancestors(prefixes, ())} if prefixes else set()
    found = [i for i, t in enumerate(program.feeds) if t.op.name in names and t.shape.rank == 0]
    return found[0] if found else None


class CheckpointWrite:
    """Runs a saver's operations, with the name at feed `filename`, so that files appear at once."""

    def __init__(self, function: HostFunction, filename: int):
        self._function = function
        self._filename = filename

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Writes the checkpoint; returns the fetches, with its name, as a TF1 session did."""
        wanted = compat.as_str_any(np.asarray(values[self._filename]).item())
        with cancelled_by(None), _explained(wanted), appearing_at_once(wanted) as prefix:
            with self._completed(prefix) as own:
                given = list(values)
                given[self._filename] = np.asarray(own, object)
                tensors = self._function.tensors(given, reads_all=True)
                results = [as_numpy(r) for r in tensors]
        written = compat.as_bytes(own)
        return [
            compat.as_bytes(wanted) if isinstance(r, bytes) and r == written else r for r in results
        ]

    def _completed(self, prefix: str) -> contextlib.AbstractContextManager[str]:
        """A context with the path for this machine's rows; its end merges all machines' rows."""
        sharded = self._function.store.sharded
        if sharded is None:
            return contextlib.nullcontext(prefix)
        return sharded.completed(prefix, self._function.read)


@contextlib.contextmanager
def _explained(prefix: str) -> Iterator[None]:
    """Adds advice to the error of a write.

    A full disk is OutOfRange to TensorFlow, which a loop would take for the end of data.
    """
    try:
        yield
    except tf.errors.OpError as error:
        if "Could not find variable" in error.message:  # the file is not to blame
            raise
        kind = type(error)
        if isinstance(error, tf.errors.OutOfRangeError):
            kind = tf.errors.ResourceExhaustedError
        raise kind(
            error.node_def,
            error.op,
            f"Could not write a checkpoint; those written before are intact. Wanted {prefix}: "
            f"{op_errors.words(error)}. See that the disk has room, and that this process may "
            "write there; RunConfig(keep_checkpoint_max=...) keeps fewer checkpoints.",
        ) from None
