"""Attributes the compiler's buffers to lines of the user's code and to layers."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterable, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.graph import sources
from tpu_estimator_compat.tools.preflight import sizes
from tpu_estimator_compat.tools.preflight.compiled import Place, RawBuffer
from tpu_estimator_compat.tools.preflight.planned import PlannedStep
from tpu_estimator_compat.tools.preflight.report import Buffer, Layer

_MOST_BUFFERS = 10
_SMALL_PART = 1000
_QUOTED = re.compile(r"['\"]([\w./-]+)['\"]")


class Attribution:
    """Finds the operations, lines and layers to which the buffers of a compiled step belong."""

    def __init__(self, step: PlannedStep):
        self._step = step
        self._sources = sources.Sources(step.captured.graph)
        self._inputs = step.feed_names

    def largest(self, buffers: Iterable[RawBuffer]) -> list[Buffer]:
        """The largest buffers, with lines of user code; none below a thousandth of the total."""
        known = list(buffers)
        least = sum(b.size for b in known) / _SMALL_PART
        found = sorted((b for b in known if b.size > least), key=lambda b: -b.size)
        return [
            self._buffer(b.size, b.unpadded, b.shape, self._name(b)) for b in found[:_MOST_BUFFERS]
        ]

    def largest_variables(self) -> list[Buffer]:
        """The largest variables, in unpadded bytes; none below a thousandth of the total."""
        known = sizes.variables(self._step)
        least = sum(v.bytes for v in known) / _SMALL_PART
        large = [v for v in known if v.bytes > least]
        found = sorted(large, key=lambda v: -v.bytes)[:_MOST_BUFFERS]
        handles = {op.name: op for op in self._step.variables}
        return [
            self._buffer(v.bytes, v.bytes, sizes.shape_of(handles[v.name]), v.name) for v in found
        ]

    def with_temporaries(
        self, layers: Sequence[Layer], buffers: Iterable[RawBuffer]
    ) -> list[Layer]:
        """The layers, each with the temporaries of its ops and their gradients."""
        totals: dict[str | None, int] = collections.defaultdict(int)
        for buffer in buffers:
            if buffer.place is Place.TEMPORARY:
                totals[sizes.layer_of(self._name(buffer), layers)] += buffer.size
        return [dataclasses.replace(x, temporaries=totals[x.name]) for x in layers]

    def operation_in(self, message: str) -> tf.Operation | None:
        """The first operation of the user's graph that a compiler's message names in quotes."""
        found = (self._sources.find(name) for name in _QUOTED.findall(message))
        return next((op for op in found if op is not None), None)

    def _name(self, buffer: RawBuffer) -> str:
        """The op in the user's graph behind a buffer; empty where the compiler named none."""
        if buffer.feed is not None:
            return self._inputs[buffer.feed]
        op = self._sources.find(buffer.op_name) if buffer.op_name else None
        return buffer.op_name if op is None else op.name

    def _buffer(self, size: int, unpadded: int, shape: str, name: str) -> Buffer:
        source = None if name in self._inputs else self._sources[name]
        return Buffer(size, unpadded, shape, name, source)
