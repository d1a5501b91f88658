"""Functions of a captured graph on the host: fetches, targets and feeds, traced once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.functions import eager, functions
from tpu_estimator_compat.engine.functions.traces import Contents, Holder
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.random_streams import RandomStreams
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram

_LARGE = 2**16  # bytes
_HANDLES = frozenset({tf.resource.as_datatype_enum, tf.variant.as_datatype_enum})


class HostFunction:
    """One set of fetches, targets and feeds; traced on first use, runs on the host.

    Args:
      optimize: see `functions.call_options`; for a function that runs in every step. Grappler
        also prunes unused ops of branches and loops, which TF1 did not run.
      done: operations that have run already: the function neither runs them nor waits for them.
      streams: of random ops, which the function continues; None for streams of its own.

    Attributes:
      read: names of the variables that it reads, and does not write.
    """

    def __init__(
        self,
        graph: tf.Graph,
        store: VariableStore,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tf.Tensor],
        *,
        optimize: bool = False,
        done: Collection[tf.Operation] = (),
        streams: RandomStreams | None = None,
    ):
        program = ReplicaProgram(graph, feeds, fetches, targets, done=done)
        # A dataset of arrays is a graph of large constants, and its function runs once.
        self._constants = _large_constants(program) if any(map(is_handle, fetches)) else []
        if self._constants:
            feeds = [*feeds, *self._constants]
            program = ReplicaProgram(graph, feeds, fetches, targets, done=done)
        if unfed := program.unfed_placeholders():
            raise tf.errors.InvalidArgumentError(
                None,
                unfed[0],
                f"You must feed a value for placeholder tensor {unfed[0].name!r} with dtype "
                f"{unfed[0].outputs[0].dtype.name} and shape {unfed[0].outputs[0].shape}.",
            )
        store.prepare(program.handles)
        self.program = program
        self.store = store
        self._written = [op for op in program.written_handles() if op.name in store]
        self._does_nothing = not fetches and all(op.type == "NoOp" for op in program.ops)
        self._optimize = optimize
        self.read = {op.name for op in program.handles} - {op.name for op in self._written}
        self._dtypes = [t.dtype.base_dtype for t in program.feeds]
        self._function = _function_of(
            lambda *values: program(values, store.host_handle, streams), program, store, streams
        )

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """The fetches as a TF1 session returned them."""
        return [as_numpy(r) for r in self.tensors(values)]

    def tensors(self, values: Sequence[Any], *, reads_all: bool = False) -> list[tf.Tensor]:
        """The fetches as tensors; those of plain reads share the variables' buffers.

        With `reads_all`, for reads of most variables, as by a checkpoint, no read copies.
        """
        if self._does_nothing:  # such as initializers of a model without tables
            return []
        call_options = functions.call_options(optimize=self._optimize)
        with eager.eager_mode(), tf.device("/cpu:0"):
            self.store.to_host(op.name for op in self._written)
            if reads_all:
                self.store.share_reads(self.read)
            with self.store.host_view(self.read), call_options:
                values = [*values, *map(tf.get_static_value, self._constants)]
                tensors = list(map(tf.convert_to_tensor, values, self._dtypes))
                results: list[tf.Tensor] = self._function(*tensors)
            self.store.broadcast(self._written, restored=_restores(self.program))
        return results


def _large_constants(program: ReplicaProgram) -> list[tf.Tensor]:
    """Constants of a program that TensorFlow would copy several times while it makes a function."""
    outputs = [op.outputs[0] for op in program.ops if op.type == "Const"]
    return [t for t in outputs if (t.shape.num_elements() or 0) * _size(t.dtype) > _LARGE]


def _size(dtype: tf.DType) -> int:
    """Bytes of an element; of a string, what a short one takes."""
    return 8 if dtype == tf.string else int(dtype.size)


def _function_of(
    call: Callable[..., Any],
    program: ReplicaProgram,
    store: VariableStore,
    streams: RandomStreams | None,
) -> Callable[..., Any]:
    """A function of a host program; equal programs may share its trace."""
    if any(map(is_handle, [*program.feeds, *program.fetches])):
        return functions.function(call)
    signature = None if _gives_first_values(program) else program.signature(streams)
    holders: list[Holder] = [store, *([streams] if streams else [])]
    contents = None if signature is None else Contents(signature, holders)
    return functions.SharedFunction(call, contents)


def _gives_first_values(program: ReplicaProgram) -> bool:
    """Whether a program may initialize variables.

    TensorFlow keeps the initial values as constants of the function, so that a cached function
    would take as much memory as the variables.
    """
    return any(op.type == "AssignVariableOp" for op in program.ops) and not _restores(program)


def _restores(program: ReplicaProgram) -> bool:
    return any(op.type == "RestoreV2" for op in program.ops)


def as_numpy(value: tf.Tensor) -> Any:
    """The value that a TF1 session returns for a tensor; handles and variants stay tensors."""
    return value if is_handle(value) else value.numpy()


def is_handle(tensor: tf.Tensor) -> bool:
    """Whether a tensor is a handle or variant, whose handle data a function must keep."""
    return tensor.dtype.as_datatype_enum in _HANDLES
