"""A TF1 session on live TF2 variables, so that TF's own Saver, Scaffold and hooks run unchanged.

`run(fetches, feed_dict)` prunes the captured graph to what is asked for, imports it into a
tf.function once, and calls that. Variables are the store's; nothing else is kept between calls.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.client import session as tf_session
from tensorflow.python.framework import stack
from tensorflow.python.training.training_util import GLOBAL_STEP_READ_KEY
from tensorflow.python.util import compat

from tpu_estimator_compat.program import graph_ops
from tpu_estimator_compat.program.fetches import FetchHandlers
from tpu_estimator_compat.program.graph_ops import Key, key
from tpu_estimator_compat.program.replica_program import ReplicaProgram
from tpu_estimator_compat.program.saved_files import appearing_at_once
from tpu_estimator_compat.program.sources import with_lines
from tpu_estimator_compat.program.variables import VariableStore, components
from tpu_estimator_compat.runtime import eager, functions, op_errors, profiles
from tpu_estimator_compat.runtime.traces import Contents

Names = tuple[str, ...]
_NO_PARTIAL_RUN = "partial_run is not supported: run all fetches in one `run` call."
_ALIASES = frozenset({"Identity", "ReadVariableOp"})
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


def _read(variable: tf.Variable) -> tf.Tensor:
    """Its value, as hooks ask for it in every run: `read_value` takes twice as long."""
    return tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)


class GraphSession(tf_session.SessionInterface):
    """The session of one captured graph.

    Args:
      graph: the captured graph.
      store: its live variables.
    """

    sess_str = b""

    def __init__(self, graph: tf.Graph, store: VariableStore):
        self._graph = graph
        self.store = store
        self._functions: dict[tuple[Names, Names, Names], HostFunction] = {}
        self._handlers = FetchHandlers(graph)
        self._variables_behind: dict[Key, str] = {}
        self._values: dict[str, tf.Tensor] = {}
        self._initialized: set[str] = set()  # names of variables: none loses its value
        self._step_variable: tf.Variable | None = None
        self._closed = False

    @property
    def graph(self) -> tf.Graph:
        return self._graph

    @property
    def graph_def(self) -> tf.compat.v1.GraphDef:
        return self._graph.as_graph_def(add_shapes=True)

    def close(self) -> None:
        self._closed = True
        self._functions.clear()
        self._handlers.clear()
        self._step_variable = None

    def start(self, restored: str | None = None) -> None:
        """Called when all variables have their first values, before any step.

        Args:
          restored: the checkpoint that has them; None where initialisers have made them.
        """

    def __enter__(self) -> GraphSession:
        return self

    def __exit__(self, *unused_error) -> None:
        self.close()

    def as_default(self):
        """A context in which this is `tf.compat.v1.get_default_session()`."""
        return stack.default_session(self)

    def partial_run_setup(self, fetches, feeds=None):
        raise NotImplementedError(_NO_PARTIAL_RUN)

    def partial_run(self, handle, fetches, feed_dict=None):
        raise NotImplementedError(_NO_PARTIAL_RUN)

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Runs operations and evaluates tensors, as `tf.compat.v1.Session.run` does.

        Args:
          fetches: a tensor, operation, name, or nested structure of these.
          feed_dict: values for graph tensors.
          options: a `RunOptions`; its `trace_level` alone counts.
          run_metadata: a `RunMetadata`; with a `trace_level`, `step_stats` gets the operations that
            were run, with their times.

        Returns:
          A structure like `fetches`: numpy values for tensors, None for operations.

        Raises:
          RuntimeError: the session is closed.
          ValueError: a fed value does not fit its tensor.
          tf.errors.OpError: what an operation raised.
        """
        if options is not None and options.trace_level and run_metadata is not None:
            with profiles.traced_into(run_metadata):
                return self.run(fetches, feed_dict)
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        feeds = self._feeds(feed_dict or {})
        fetched = self._handlers(fetches, {t.ref(): v for t, v in feeds}, self)
        with eager.eager_mode(), with_lines(self._graph):  # once for all that a run does
            values = self._evaluate(fetched.tensors, fetched.targets, feeds)
        return fetched.results(values)

    def make_callable(self, fetches, feed_list=None, accept_options=False):
        """A function of the values of `feed_list` that runs `fetches`, as queue runners call it."""
        del accept_options
        return lambda *values: self.run(fetches, dict(zip(feed_list or (), values, strict=True)))

    def value_if_handle(self, tensor: tf.Tensor) -> tf.Tensor:
        """The value of a variable whose handle `tensor` is, else `tensor`.

        Variables of TF1 had no handles: "weights:0" was the value, for hooks and `session.run`.
        """
        if tensor.dtype != tf.resource:
            return tensor
        if tensor.name not in self._values:
            self._values |= {v.op.outputs[0].name: v._graph_element for v in self._variables()}
        return self._values.get(tensor.name, tensor)

    def _variables(self) -> list[tf.Variable]:
        """The graph's global and local variables."""
        keys = (tf.compat.v1.GraphKeys.GLOBAL_VARIABLES, tf.compat.v1.GraphKeys.LOCAL_VARIABLES)
        return [v for k in keys for v in self._graph.get_collection(k)]

    def _feeds(self, feed_dict: dict[Any, Any]) -> list[tuple[tf.Tensor, np.ndarray]]:
        feeds = []
        for feed, value in feed_dict.items():
            for kind, _, expand, _ in tf_session._REGISTERED_EXPANSIONS:
                if isinstance(feed, kind):
                    pairs = expand(feed, value)
                    break
            for tensor, part in pairs:
                tensor = self._graph.as_graph_element(tensor, allow_operation=False)
                array = np.asarray(part, dtype=tensor.dtype.as_numpy_dtype)
                if not tensor.shape.is_compatible_with(array.shape):
                    raise ValueError(
                        f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, "
                        f"which has shape {tensor.shape}"
                    )
                feeds.append((tensor, array))
        return feeds

    def _evaluate(
        self,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]],
    ) -> list[Any]:
        if not targets and not feeds:
            read = [self._direct_read(t) for t in fetches]
            if all(value is not None for value in read):
                return read
        names = (
            tuple(t.name for t in fetches),
            tuple(op.name for op in targets),
            tuple(t.name for t, _ in feeds),
        )
        function = self._functions.get(names)
        if function is None:
            function = HostFunction(
                self._graph, self.store, fetches, targets, [t for t, _ in feeds]
            )
            self._functions[names] = function
        return function([value for _, value in feeds])

    def variable_behind(self, tensor: tf.Tensor) -> tf.Variable | None:
        """The live variable whose plain value `tensor` is, if it is one."""
        name = self._variables_behind.get(key(tensor))
        if name is None:
            name = self._name_behind(tensor)
            if name is None:
                return None
            self._variables_behind[key(tensor)] = name
        return components(self.store[name])[0]

    def _name_behind(self, tensor: tf.Tensor) -> str | None:
        if self.is_step_of_hooks(tensor):
            tensor = tf.compat.v1.train.get_global_step(self._graph)._graph_element
        op = tensor.op
        while op.type in _ALIASES:
            if op.control_inputs:  # a read that has to wait for something, such as an assignment
                return None
            op = op.inputs[0].op
        if op is tensor.op or op.type != "VarHandleOp" or op.name not in self.store:
            return None
        return op.name

    def is_step_of_hooks(self, tensor: tf.Tensor) -> bool:
        """Whether TF's hooks fetch the step by it: a branch guards against a read too early."""
        return any(tensor is t for t in self._graph.get_collection(GLOBAL_STEP_READ_KEY))

    def global_step_variable(self) -> tf.Variable | None:
        """The live variable of the global step; None where the graph has none."""
        if self._step_variable is None:
            self._step_variable = self.store.global_step(self._graph)
        return self._step_variable

    def global_step(self) -> int:
        """The current global step; 0 where the graph has none."""
        step = self.global_step_variable()
        if step is None:
            return 0
        self.store.to_host([step.name[:-2]])
        with eager.eager_mode():
            return int(_read(step))

    def uninitialized(self) -> list[str]:
        """Names of global and local variables without a value."""
        variables = self._variables()
        self.store.prepare([v.op for v in variables])
        with eager.eager_mode():
            return [
                v.op.name
                for v in variables
                if not components(self.store[v.op.name])[0].is_initialized()
            ]

    def _direct_read(self, tensor: tf.Tensor) -> Any:
        variable = self.variable_behind(tensor)
        if variable is None:
            return None
        name = variable.name[:-2]
        with eager.eager_mode(), self.store.host_view([name]):
            if name not in self._initialized:
                if not variable.is_initialized():
                    raise tf.errors.FailedPreconditionError(
                        None, None, f"Attempting to use uninitialized value {name}"
                    )
                self._initialized.add(name)
            return as_numpy(_read(variable))
