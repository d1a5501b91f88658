"""Traced functions, kept for programs that are the same: those need no tracing and no optimising.

A function that TensorFlow has traced is given what it holds on to (variables, tables, states of
random ops) with every call. What is kept of it is the runtime's function alone, and the names of
what it is to be given. Code that builds the same function of other variables takes it, and passes
its own. The runtime has optimised it then, and made its kernels.

A program is known by a signature. What it does not say is asked here: which executor, which device,
which options. A function that holds on to something without a name is not kept.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

import tensorflow as tf

from tpu_estimator_compat.tf_internals import AtomicFunction, InterpolateRuntimeError, context
from tpu_estimator_compat.tf_internals import framework_config as config

Name = Any  # hashable, and the same for the same program


class Holder(Protocol):
    """Has handles of variables and other resources, by names that the same program gives them."""

    def handles(self) -> Mapping[Name, tf.Tensor]:
        """All handles that there are."""

    def handle(self, name: Name) -> tf.Tensor:
        """The handle of a name, which another holder of the same program had."""


class Handles:
    """A `Holder` of handles that are all there.

    Args:
      handles: by name.
    """

    def __init__(self, handles: Mapping[Name, tf.Tensor]):
        self._handles = handles

    def handles(self) -> Mapping[Name, tf.Tensor]:
        """See `Holder`."""
        return self._handles

    def handle(self, name: Name) -> tf.Tensor:
        """See `Holder`."""
        return self._handles[name]


@dataclasses.dataclass(frozen=True)
class Contents:
    """The contents of a function, by which equal functions are found.

    Attributes:
      signature: the same for functions that compute the same, each of its own holders' handles.
      holders: of what it may hold on to, in an order that the same functions have in common.
    """

    signature: Hashable
    holders: Sequence[Holder]

    def within(self, signature: Hashable, *holders: Holder) -> Contents:
        """The contents of a function that has this one in it.

        Args:
          signature: the rest of the signature.
          *holders: of what that may hold on to.
        """
        return Contents((signature, self.signature), [*self.holders, *holders])


@dataclasses.dataclass(frozen=True)
class Traced:
    """A function of the runtime, ready to be called.

    Attributes:
      function: the function.
      captured: the values that it captures.
    """

    function: Any
    captured: Sequence[tf.Tensor]

    def __call__(self, inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The function's results, flat, for its flat arguments.

        A tf.function looks in every call for those who may differentiate it, and packs its outputs:
        0.04 of the 0.09 ms that a call of next to nothing takes.
        """
        called = self.function
        count = len(called.function_type.flat_outputs)
        try:
            outputs: list[tf.Tensor] | None
            outputs = context.context().call_function(called.name, [*inputs, *self.captured], count)
        except tf.errors.OpError:
            with InterpolateRuntimeError(called):  # says where the op that failed was made
                raise
        return outputs or []


@dataclasses.dataclass(frozen=True)
class _Kept:
    """A function without its graph, which has variables in it.

    Attributes:
      function: the function.
      captured: index of the holder, and name, of what it is given besides its arguments.
      size: bytes of its definition, and of its constants.
    """

    function: Any
    captured: Sequence[tuple[int, Name]]
    size: int


class Traces:
    """Functions that were traced, by what they are made of; those used last, up to a size.

    Args:
      most: the number of functions that are kept.
      most_bytes: of their definitions and constants. What the runtime makes of a definition takes
        some times as much.
    """

    def __init__(self, most: int = 32, most_bytes: int = 64 * 2**20):
        self._most, self._most_bytes = most, most_bytes
        self._kept: collections.OrderedDict[Hashable, _Kept] = collections.OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()  # a thread writes checkpoints

    def __len__(self) -> int:
        return len(self._kept)

    def find(
        self, contents: Contents | None, arguments: Hashable, trace: Callable[[], Any]
    ) -> Traced:
        """The function of some contents: one that was traced before, or a new one.

        Args:
          contents: the contents of the function; None for a function that is not kept.
          arguments: their types.
          trace: traces it; returns a concrete function.
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
        """Forgets all functions."""
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
"""The number of this process's replicas."""


def _surroundings() -> Hashable | None:
    """The settings that tracing depends on besides the program; None while a recorder is on."""
    here = context.context()
    if here.op_callbacks:
        return None
    options = here.function_call_options
    return (
        id(here),  # alive as long as the functions that were made in it
        here.device_name,
        options.executor_type,
        options.config_proto_serialized,
        config.is_op_determinism_enabled(),
    )


def _traced(concrete: Any) -> Traced:
    return Traced(concrete.inference_fn, concrete.captured_inputs)


def _kept(traced: Traced, holders: Sequence[Holder]) -> _Kept | None:
    """The part of a function that can be kept; None if it captures something without a name."""
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
    """The same function of the runtime, without the graph that it was made from."""
    # Others than those that TensorFlow traced came with an imported graph: the runtime keeps them.
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
    # A definition has a value that fills a constant but once.
    return int(definition.ByteSize()) + sum(map(_made_size, constants)) + sum(map(_size, children))


def _made_size(constant: Any) -> int:
    """Bytes of a constant as the runtime makes it, but for those of strings."""
    shape = (dim.size for dim in constant.tensor_shape.dim)
    return math.prod(shape) * tf.as_dtype(constant.dtype).size
