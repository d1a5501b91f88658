"""A function of a captured graph that runs on the host: fetches, targets and feeds, once traced."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.runtime import eager, functions, op_errors
from tpu_estimator_compat.engine.runtime.traces import Contents
from tpu_estimator_compat.engine.state.saved_files import appearing_at_once
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram
from tpu_estimator_compat.tf_internals import compat

_HANDLES = frozenset({tf.resource.as_datatype_enum, tf.variant.as_datatype_enum})


class HostFunction:
    """One set of fetches, targets and feeds, compiled on first use; runs on the host.

    Args:
      graph: the captured graph.
      store: holds the variables and resources.
      fetches: graph tensors to return.
      targets: operations to run.
      feeds: graph tensors that the caller gives.
      reads_all: whether this reads most variables, as a checkpoint does: reads share buffers then.
      optimize: see `functions.call_options`. A function that runs in every step wants it; it also
        leaves out what nobody asks for in branches and loops, which TF1 did not run.
      done: operations that have run elsewhere: nothing waits for them, or runs them again.
    """

    def __init__(
        self,
        graph: tf.Graph,
        store: VariableStore,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tf.Tensor],
        *,
        reads_all: bool = False,
        optimize: bool = False,
        done: Collection[tf.Operation] = (),
    ):
        program = ReplicaProgram(graph, feeds, fetches, targets, done=done)
        if unfed := program.unfed_placeholders():
            raise tf.errors.InvalidArgumentError(
                None,
                unfed[0],
                f"You must feed a value for placeholder tensor {unfed[0].name!r} with dtype "
                f"{unfed[0].outputs[0].dtype.name} and shape {unfed[0].outputs[0].shape}.",
            )
        store.prepare(program.handles)
        self._store = store
        self._written = [op for op in program.written_handles() if op.name in store]
        self._does_nothing = not fetches and all(op.type == "NoOp" for op in program.ops)
        self._filename = _filename_feed(program)
        self._optimize = optimize
        self._reads_all = reads_all or self._filename is not None
        self._read = {op.name for op in program.handles} - {op.name for op in self._written}
        self._dtypes = [t.dtype for t in program.feeds]
        self._function = _function_of(
            lambda *values: program(values, store.host_handle), program, store
        )

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """The fetches as a TF1 session returned them."""
        if self._filename is None:
            return [as_numpy(r) for r in self.tensors(values)]
        wanted = compat.as_str_any(np.asarray(values[self._filename]).item())
        with _explained(wanted), appearing_at_once(wanted) as prefix:
            with self._completed(prefix) as own:
                values = list(values)
                values[self._filename] = np.asarray(own, object)
                results = [as_numpy(r) for r in self.tensors(values)]
        written = compat.as_bytes(own)
        return [
            compat.as_bytes(wanted) if isinstance(r, bytes) and r == written else r for r in results
        ]

    def _completed(self, prefix: str) -> contextlib.AbstractContextManager[str]:
        """Gives a place for what this machine has of a checkpoint, and adds what others have."""
        if self._store.sharded is None:
            return contextlib.nullcontext(prefix)
        return self._store.sharded.completed(prefix, self._read)

    def tensors(self, values: Sequence[Any]) -> list[tf.Tensor]:
        """The fetches as tensors; those of plain reads share the variables' buffers."""
        if self._does_nothing:  # initialisers of what a model does not have
            return []
        call_options = functions.call_options(optimize=self._optimize)
        with eager.eager_mode(), tf.device("/cpu:0"):
            self._store.to_host(op.name for op in self._written)
            if self._reads_all:
                self._store.share_reads(self._read)
            with self._store.host_view(self._read), call_options:
                tensors = list(map(tf.convert_to_tensor, values, self._dtypes))
                results: list[tf.Tensor] = self._function(*tensors)
            self._store.broadcast(self._written)
        return results


def _function_of(
    call: Callable[..., Any], program: ReplicaProgram, store: VariableStore
) -> Callable[..., Any]:
    """A function of a host's program, which others that have the same may have traced."""
    if any(map(is_handle, [*program.feeds, *program.fetches])):
        return functions.function(call)
    signature = None if _gives_first_values(program) else program.signature()
    contents = None if signature is None else Contents(signature, [store])
    return functions.SharedFunction(call, contents)


def _gives_first_values(program: ReplicaProgram) -> bool:
    """Whether it may initialise variables: TensorFlow keeps what it fills them with as constants.

    So a function of it that is kept would take as much memory as the variables.
    """
    writes = any(op.type == "AssignVariableOp" for op in program.ops)
    return writes and not any(op.type == "RestoreV2" for op in program.ops)


def _filename_feed(program: ReplicaProgram) -> int | None:
    """Which feed of a program that saves is the checkpoint's name, if any."""
    prefixes = [op.inputs[0].op for op in program.ops if op.type == "SaveV2"]
    names = {op.name for op in graph_ops.ancestors(prefixes, ())} if prefixes else set()
    found = [i for i, t in enumerate(program.feeds) if t.op.name in names and t.shape.rank == 0]
    return found[0] if found else None


@contextlib.contextmanager
def _explained(prefix: str) -> Iterator[None]:
    """Says what failed, where a file cannot be written.

    A file that cannot grow is OutOfRange to TensorFlow, which a loop would take for end of data.
    """
    try:
        yield
    except tf.errors.OpError as error:
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


def as_numpy(value: tf.Tensor) -> Any:
    """The value that a TF1 session returns for a tensor; handles and variants stay tensors."""
    return value if is_handle(value) else value.numpy()


def is_handle(tensor: tf.Tensor) -> bool:
    """Whether it is a handle or variant: a function has to keep what is known of its variable."""
    return tensor.dtype.as_datatype_enum in _HANDLES
