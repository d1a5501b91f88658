"""A cache of traced functions: equal programs share one trace, its optimisation and its kernels.

A traced function gets its captured handles (variables, tables, states of random ops) with every
call. The cache keeps the function, and the names of these handles. Code that builds the same
function on other variables reuses it, with its own handles.

The key is the program's signature, and the executor, device and options of the call. A function
that captures a tensor without a name is not kept.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

import tensorflow as tf

from tpu_estimator_compat.engine.functions import cancelling
from tpu_estimator_compat.tf_internals import AtomicFunction, InterpolateRuntimeError, context
from tpu_estimator_compat.tf_internals import framework_config as config

Name = Any  # hashable, and the same for the same program


class Holder(Protocol):
    """Handles of variables and other resources, by names that are equal in equal programs."""

    def handles(self) -> Mapping[Name, tf.Tensor]:
        """All handles that exist."""

    def handle(self, name: Name) -> tf.Tensor:
        """The handle of a name; makes it if, so far, only an equal program has it."""


class Handles:
    """A `Holder` of handles that all exist."""

    def __init__(self, handles: Mapping[Name, tf.Tensor]):
        self._handles = handles

    def handles(self) -> Mapping[Name, tf.Tensor]:
        return self._handles

    def handle(self, name: Name) -> tf.Tensor:
        return self._handles[name]


@dataclasses.dataclass(frozen=True)
class Contents:
    """The computation of a function, as a key by which equal functions find each other's trace.

    Attributes:
      signature: equal for functions that compute the same from their holders' handles.
      holders: of the handles that it may capture, in the same order for equal functions.
    """

    signature: Hashable
    holders: Sequence[Holder]

    def within(self, signature: Hashable, *holders: Holder) -> Contents:
        """The contents of a function that calls this one and also captures handles of `holders`."""
        return Contents((signature, self.signature), [*self.holders, *holders])


@dataclasses.dataclass(frozen=True)
class Traced:
    """A function of the eager context, with the tensors that it captures."""

    function: Any
    captured: Sequence[tf.Tensor]

    def __call__(self, inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The results, flat.

        A tf.function also looks for gradient tapes and packs its results: 0.04 ms of the 0.09 ms
        of an empty call.
        """
        called = self.function
        count = len(called.function_type.flat_outputs)
        try:
            outputs = cancelling.call(called.name, [*inputs, *self.captured], count)
        except tf.errors.OpError:
            with InterpolateRuntimeError(called):  # adds the line that made the op
                raise
        return outputs


@dataclasses.dataclass(frozen=True)
class _Kept:
    """A function without its graph, which would keep variables alive.

    Attributes:
      captured: (index of the holder, name) of each captured handle.
      size: bytes of the definition and the constants.
    """

    function: Any
    captured: Sequence[tuple[int, Name]]
    size: int


class Traces:
    """A cache of traced functions that drops the least recently used.

    Args:
      most: the largest number of functions.
      most_bytes: limit of definitions and constants; TensorFlow's objects take several times that.
    """

    def __init__(self, most: int = 32, most_bytes: int = 64 * 2**20):
        self._most, self._most_bytes = most, most_bytes
        self._kept: collections.OrderedDict[Hashable, _Kept] = collections.OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()  # for the thread that writes checkpoints, too

    def __len__(self) -> int:
        return len(self._kept)

    def find(
        self, contents: Contents | None, arguments: Hashable, trace: Callable[[], Any]
    ) -> Traced:
        """The function with some contents: from the cache, or traced now.

        `contents` is None for a function that is not kept; `arguments` has the types of its
        arguments; `trace` returns a concrete function.
        """
        around = _surroundings()
        if contents is None or around is None:
            return _traced(trace())
        key = (contents.signature, arguments, around)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
        if kept is None:
            traced = _traced(trace())
            kept = _kept(traced, contents.holders)
            if kept is None or kept.size > self._most_bytes:
                return traced
            self._keep(key, kept)
            return Traced(kept.function, traced.captured)
        captured = [contents.holders[i].handle(name) for i, name in kept.captured]
        return Traced(kept.function, captured)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def _keep(self, key: Hashable, kept: _Kept) -> None:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = kept
                self._bytes += kept.size
            while len(self._kept) > self._most or self._bytes > self._most_bytes:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= oldest.size


TRACES = Traces()
"""The functions that this process has traced."""


def _surroundings() -> Hashable | None:
    """The settings that a trace depends on besides the program; None with op callbacks."""
    here = context.context()
    if here.op_callbacks:
        return None
    options = here.function_call_options
    return (
        id(here),  # no other context gets this id while functions of it are alive
        here.device_name,
        options.executor_type,
        options.config_proto_serialized,
        config.is_op_determinism_enabled(),
    )


def _traced(concrete: Any) -> Traced:
    return Traced(concrete.inference_fn, concrete.captured_inputs)


def _kept(traced: Traced, holders: Sequence[Holder]) -> _Kept | None:
    """A function to keep; None if a capture has no name, or is a control input."""
    names = {
        id(handle): (i, name)
        for i, holder in enumerate(holders)
        for name, handle in holder.handles().items()
    }
    captured = [found for t in traced.captured if (found := names.get(id(t)))]
    function = traced.function
    if len(captured) < len(traced.captured) or function.call_options.control_captures:
        return None
    return _Kept(_without_graph(function), captured, _size(function))


def _without_graph(function: Any) -> Any:
    # Children of other classes came with an imported graph: the eager context keeps them.
    children = [child for child in function.children if isinstance(child, AtomicFunction)]
    options = dataclasses.replace(function.call_options, control_captures=[])
    return AtomicFunction(
        function.name,
        function._bound_context,
        function.function_type,
        [_without_graph(child) for child in children],
        options,
    )


def _size(function: Any) -> int:
    definition, children = function.definition, getattr(function, "children", ())
    constants = [node.attr["value"].tensor for node in definition.node_def if node.op == "Const"]
    # A definition has a uniform constant's value once, memory has all.
    return int(definition.ByteSize()) + sum(map(_made_size, constants)) + sum(map(_size, children))


def _made_size(constant: Any) -> int:
    """Bytes of a constant in memory, without those of its strings."""
    shape = (dim.size for dim in constant.tensor_shape.dim)
    return math.prod(shape) * tf.as_dtype(constant.dtype).size
