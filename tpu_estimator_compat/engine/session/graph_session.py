"""A TF1 session on live TF2 variables, so that TF's Saver, Scaffold and hooks run unchanged.

`run(fetches, feed_dict)` prunes the captured graph, imports it into a tf.function once, and calls
the function. Between calls, only the store keeps state: variables, tables, iterators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.config import warn_of_idle_fields
from tpu_estimator_compat.engine.checkpoint.writing import session_function
from tpu_estimator_compat.engine.functions import eager, placement, profiles
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.graph.sources import with_lines
from tpu_estimator_compat.engine.loop.group_runner import GroupRunner
from tpu_estimator_compat.engine.loop.runner import Runner
from tpu_estimator_compat.engine.refs import resource_graph
from tpu_estimator_compat.engine.session import feeds as feeds_lib
from tpu_estimator_compat.engine.session.fetches import FetchHandlers
from tpu_estimator_compat.engine.state.variables import READY_KEYS, VariableStore, components
from tpu_estimator_compat.engine.step.host_function import as_numpy
from tpu_estimator_compat.engine.step.random_streams import RandomStreams
from tpu_estimator_compat.environment import SESSION
from tpu_estimator_compat.tf_internals import GLOBAL_STEP_READ_KEY, stack, tf_session

Names = tuple[str, ...]
_NO_PARTIAL_RUN = (
    "partial_run is not supported here: run all fetches in one `run` call, or set "
    f'RunConfig(runtime="{SESSION}").'
)
_OF_SESSIONS = ("timeout_in_ms", "output_partition_graphs", "debug_options")
"""Fields of RunOptions that change what a run gives or writes; others are about its threads."""
_ALIASES = frozenset({"Identity", "ReadVariableOp"})


def _read(variable: tf.Variable) -> tf.Tensor:
    """The value of a variable; `read_value` takes twice as long, and hooks read in every run."""
    return tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)


class GraphSession(tf.compat.v1.Session):
    """A `tf.compat.v1.Session` of one captured graph, without a session in C++."""

    sess_str = _target = b""
    _add_shapes = False

    def __init__(
        self,
        graph: tf.Graph,
        store: VariableStore,
        config: tf.compat.v1.ConfigProto | None = None,
        streams: RandomStreams | None = None,
    ):
        self._graph = graph
        self._config = config
        self.store = store
        self._all_streams = streams or RandomStreams()
        self._streams: RandomStreams | None = None  # None: each initializer has its own
        self._functions: dict[tuple[Names, Names, Names], Callable[[Sequence[Any]], list[Any]]] = {}
        self._handlers = FetchHandlers(graph)
        self._variables_behind: dict[Key, str] = {}
        self._values: dict[str, tf.Tensor] = {}
        self._initialized: set[str] = set()  # variables never lose their values
        self._step_variable: tf.Variable | None = None
        self._closed = False

    @property
    def _session(self) -> Any:
        """Raises AttributeError: with any value, inherited methods would end the process."""
        raise AttributeError("This session has no session in C++: steps run in functions.")

    @property
    def graph(self) -> tf.Graph:
        return self._graph

    @property
    def graph_def(self) -> tf.compat.v1.GraphDef:
        return self._graph.as_graph_def(add_shapes=True)

    def list_devices(self) -> list[Any]:
        """The devices of the runtime, as `tf.compat.v1.Session.list_devices` gives them."""
        return [tf_session._DeviceAttributes(*each) for each in placement.attributes()]

    def close(self) -> None:
        self._closed = True
        self._functions.clear()
        self._handlers.clear()
        self._step_variable = None

    def start(self, restored: str | None = None) -> None:
        """Called when all variables are initialized, before the first step: see `Runner`."""
        self._streams = self._all_streams

    def __del__(self) -> None:
        """Does nothing: the maker of a session closes it, and there is nothing in C++ to free."""

    def __enter__(self) -> GraphSession:
        return self

    def __exit__(self, *unused_error) -> None:
        self.close()

    def as_default(self):
        return stack.default_session(self)

    def partial_run_setup(self, fetches, feeds=None):
        raise NotImplementedError(_NO_PARTIAL_RUN)

    def partial_run(self, handle, fetches, feed_dict=None):
        raise NotImplementedError(_NO_PARTIAL_RUN)

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Runs operations and evaluates tensors, as `tf.compat.v1.Session.run` does.

        Of `options`, `trace_level` has an effect: `run_metadata.step_stats` gets the trace.
        """
        if options is not None:
            for name in _OF_SESSIONS:
                if getattr(options, name) != getattr(type(options)(), name):
                    raise NotImplementedError(
                        f"RunOptions({name}=...) has no effect on steps: leave it out, or set "
                        f'RunConfig(runtime="{SESSION}").'
                    )
            warn_of_idle_fields(options)
        if options is not None and options.trace_level and run_metadata is not None:
            with profiles.traced_into(run_metadata):
                return self._run(fetches, feed_dict)
        return self._run(fetches, feed_dict)

    def _run(self, fetches: Any, feed_dict: Any) -> Any:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        feeds = feeds_lib.read(self._graph, feed_dict) if feed_dict else []
        fetched = self._handlers(fetches, {t.ref(): v for t, v in feeds}, self)
        if feeds:
            asked = [*(t.op for t in fetched.tensors), *fetched.targets]
            feeds_lib.check_refs(feeds, asked)
        with eager.eager_mode(), with_lines(self._graph):  # entered once per run
            values = self._evaluate(fetched.tensors, fetched.targets, feeds)
        return fetched.results(values)

    def make_callable(self, fetches, feed_list=None, accept_options=False):
        """A function of the values of `feed_list` that runs `fetches`, for queue runners."""
        del accept_options
        return lambda *values: self.run(fetches, dict(zip(feed_list or (), values, strict=True)))

    def value_if_handle(self, tensor: tf.Tensor) -> tf.Tensor:
        """The value of a variable if `tensor` is its handle, else `tensor`.

        Ref variables had no handles: hooks and `session.run` take "weights:0" for the value.
        """
        if tensor.dtype != tf.resource:
            return tensor
        if tensor.name not in self._values:
            self._values |= {v.op.outputs[0].name: v._as_graph_element() for v in self._variables()}
        return self._values.get(tensor.name, tensor)

    def _variables(self) -> list[tf.Variable]:
        return [v for k in READY_KEYS for v in self._graph.get_collection(k)]

    def _evaluate(
        self,
        fetches: Sequence[tf.Tensor],
        targets: Sequence[tf.Operation],
        feeds: Sequence[tuple[tf.Tensor, np.ndarray]],
    ) -> list[Any]:
        if not targets and not feeds:
            read = [self.direct_read(t) for t in fetches]
            if all(value is not None for value in read):
                return read
        names = (
            tuple(t.name for t in fetches),
            tuple(op.name for op in targets),
            tuple(t.name for t, _ in feeds),
        )
        function = self._functions.get(names)
        if function is None:
            fed = [t for t, _ in feeds]
            function = session_function(
                self._graph, self.store, fetches, targets, fed, self._streams
            )
            self._functions[names] = function
        return function([value for _, value in feeds])

    def variable_behind(self, tensor: tf.Tensor) -> tf.Variable | None:
        """The live variable of which `tensor` is the plain value; None for other tensors."""
        name = self._variables_behind.get(key(tensor)) or self._name_behind(tensor)
        if name is None:
            return None
        self._variables_behind[key(tensor)] = name
        return components(self.store[name])[0]

    def _name_behind(self, tensor: tf.Tensor) -> str | None:
        if self.is_step_of_hooks(tensor):
            tensor = tf.compat.v1.train.get_global_step(self._graph)._as_graph_element()
        op = tensor.op
        while op.type in _ALIASES:
            if op.control_inputs:  # a read that waits, for example for an assignment
                return None
            op = op.inputs[0].op
        is_value = graph_ops.is_variable_handle(op) and tensor.dtype != tf.resource
        return op.name if is_value and op.name in self.store else None

    def is_ref(self, tensor: tf.Tensor) -> bool:
        """Whether `tensor`, the plain value of a variable, is the value of a ref variable.

        TF's guarded read of the global step is not: it is a copy.
        """
        op = tensor.op
        while op.type == "Identity":
            op = op.inputs[0].op
        return bool(op.outputs[0].dtype._is_ref_dtype)

    def is_step_of_hooks(self, tensor: tf.Tensor) -> bool:
        """Whether `tensor` is TF's guarded read of the global step, which TF's hooks fetch."""
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
        resources = resource_graph.of(self._graph)
        self.store.prepare([resources.operation(v.op) for v in variables])
        with eager.eager_mode():
            return [
                v.op.name
                for v in variables
                if not components(self.store[v.op.name])[0].is_initialized()
            ]

    def direct_read(self, tensor: tf.Tensor) -> Any:
        """The value of an array constant, or of the variable behind `tensor`; None for others."""
        if tensor.op.type == "Const" and tensor.shape.rank:
            return tf.get_static_value(tensor)
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


class RunnerSession(GraphSession):
    """A session whose steps a runner makes; a changed graph gets another runner."""

    def __init__(
        self,
        make_runner: Callable[[], Runner],
        config: tf.compat.v1.ConfigProto | None = None,
    ):
        self.runner = make_runner()
        super().__init__(self.runner.plan.graph, self.runner.store, config, self.runner.streams)
        self._make_runner = make_runner
        self._restored: str | None = None

    def start(self, restored: str | None = None) -> None:
        super().start(restored)
        self._restored = restored
        self.runner.start(restored)

    @property
    def may_renew_steps(self) -> bool:
        """Whether `renew_steps` may be called: not where machines have agreed on one graph."""
        return not isinstance(self.runner, GroupRunner)

    def renew_steps(self) -> None:
        self.finish_host_calls()
        self.runner.close()
        self.runner = self._make_runner()
        self.runner.start(self._restored)
        self._functions.clear()

    def finish_host_calls(self) -> None:
        with with_lines(self.graph):
            self.runner.finish_host_calls()

    def direct_read(self, tensor: tf.Tensor) -> Any:
        variable = self.variable_behind(tensor)
        if variable is not None:
            self.runner.finish_host_calls(using=variable.name[:-2])
        return super().direct_read(tensor)
