"""Sizes of a captured step: bytes of variables and input, layers, exchanges; and their buffers."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterable, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.capture.replica_context import REPORTED_LOSS
from tpu_estimator_compat.engine.graph import sources
from tpu_estimator_compat.engine.step.collectives import OP_TYPES, SUMS
from tpu_estimator_compat.tools.preflight.compiled import Place, RawBuffer
from tpu_estimator_compat.tools.preflight.planned_mode import PlannedStep
from tpu_estimator_compat.tools.preflight.report import Buffer, Collectives, Layer
from tpu_estimator_compat.tools.reports import numbers

_MOST_LAYERS = 24
_MOST_BUFFERS = 10
_SMALL_PART = 1000
_QUOTED = re.compile(r"['\"]([\w./-]+)['\"]")
_NO_SCOPE = "(no scope)"


@dataclasses.dataclass(frozen=True)
class VariableSize:
    """One variable of a step; `elements` and `bytes` are 0 where its shape is not static."""

    name: str
    elements: int
    bytes: int
    trainable: bool


def variables(step: PlannedStep) -> list[VariableSize]:
    """The variables of a step, in the order in which the model made them."""
    trainable = set(step.plan.trainable_names())
    found = []
    for op in step.variables:
        dtype = tf.as_dtype(op.get_attr("dtype"))
        elements = tf.TensorShape(op.get_attr("shape")).num_elements() or 0
        found.append(VariableSize(op.name, elements, elements * dtype.size, op.name in trainable))
    return found


def shape_of(handle: tf.Operation) -> str:
    """The shape of a variable in the compiler's notation, such as "f32[64,10]"."""
    dtype = tf.as_dtype(handle.get_attr("dtype"))
    letter = dtype.name[0]
    prefix = {"b": "bf", "i": "s"}.get(letter, letter)
    name = "pred" if dtype == tf.bool else f"{prefix}{8 * dtype.size}"
    dims = tf.TensorShape(handle.get_attr("shape")).as_list()
    return f"{name}{dims}".replace(" ", "")


def input_bytes(step: PlannedStep) -> int:
    """Bytes of one replica's input; tensors of strings, or without a static shape, count 0."""
    sized = [t for t in step.feeds if t.dtype != tf.string]
    return sum((t.shape.num_elements() or 0) * t.dtype.size for t in sized)


def note_on_host_variables(step: PlannedStep) -> str:
    """A note on variables that only the host holds; empty without any."""
    stage = step.captured.host_stage
    variables = [] if stage is None else stage.variables
    if not variables:
        return ""
    size = sum((v.shape.num_elements() or 0) * v.dtype.size for v in variables)
    rows = {v.op.name: v.shape[0] for v in variables if v.trainable}
    shown = ", ".join(f"{name} ({count} rows)" for name, count in rows.items())
    return (
        f"Variables of the host take {numbers.size(size)} of its memory with their slots, and "
        f"none of a device's: {shown}."
    )


def collectives(step: PlannedStep) -> Collectives:
    """The exchanges between replicas in a step, without that of the loss. Loops count once."""
    if step.captured.topology.num_replicas == 1:
        return Collectives(0, 0)
    ops = [op for op in step.ops if not op.name.startswith(REPORTED_LOSS)]
    found = [op for op in sources.with_functions(ops) if op.type in OP_TYPES]
    sums = [op for op in found if op.type in SUMS]
    size = sum((op.outputs[0].shape.num_elements() or 0) * op.outputs[0].dtype.size for op in sums)
    return Collectives(len(sums), size, len(found) - len(sums))


def layers(sizes: Iterable[VariableSize]) -> list[Layer]:
    """Memory of variables and slots by name scope, at the deepest level that fits a table."""
    sizes = list(sizes)
    trained = {v.name for v in sizes if v.trainable}
    scopes = {v.name: _scopes(v.name, trained) for v in sizes}
    deepest = max(map(len, scopes.values()), default=1)
    groups: dict[str, list[VariableSize]] = {}
    for depth in range(1, deepest + 1):
        deeper: dict[str, list[VariableSize]] = collections.defaultdict(list)
        for variable in sizes:
            deeper["/".join(scopes[variable.name][:depth])].append(variable)
        if groups and len(deeper) > _MOST_LAYERS:
            break
        groups = deeper
    return [
        Layer(
            name or _NO_SCOPE,
            sum(v.bytes for v in members if v.trainable),
            sum(v.bytes for v in members if not v.trainable),
        )
        for name, members in groups.items()
    ]


def _scopes(name: str, trained: set[str]) -> list[str]:
    """The scopes of a variable, or of the trained variable whose slot it is.

    A trained variable without scopes has its own name as its scope.
    """
    parts = name.split("/")
    owners = ("/".join(parts[:n]) for n in range(len(parts), 0, -1))
    owner = next((candidate for candidate in owners if candidate in trained), None)
    if owner is None:
        return parts[:-1]
    return owner.split("/")[:-1] or [owner]


class Attribution:
    """Finds the operations, lines and layers to which the buffers of a compiled step belong."""

    def __init__(self, step: PlannedStep):
        self._step = step
        self._sources = sources.Sources(step.captured.graph)
        self._inputs = step.feed_names

    def largest(self, buffers: Iterable[RawBuffer]) -> list[Buffer]:
        """The largest buffers, with lines of user code; none below a thousandth of the total."""
        return self._largest([Buffer(b.size, b.unpadded, b.shape, self._name(b)) for b in buffers])

    def largest_variables(self) -> list[Buffer]:
        """The largest variables, in unpadded bytes; none below a thousandth of the total."""
        handles = {op.name: op for op in self._step.variables}
        return self._largest(
            [
                Buffer(v.bytes, v.bytes, shape_of(handles[v.name]), v.name)
                for v in variables(self._step)
            ]
        )

    def with_temporaries(
        self, layers: Sequence[Layer], buffers: Iterable[RawBuffer]
    ) -> list[Layer]:
        """The layers, each with the temporaries of its ops and their gradients."""
        totals: dict[str | None, int] = collections.defaultdict(int)
        innermost_first = sorted((layer.name for layer in layers), key=len, reverse=True)
        for buffer in buffers:
            if buffer.place is Place.TEMPORARY:
                path = f"/{self._name(buffer)}/"
                layer = next((name for name in innermost_first if f"/{name}/" in path), None)
                totals[layer] += buffer.size
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

    def _largest(self, known: Sequence[Buffer]) -> list[Buffer]:
        least = sum(buffer.size for buffer in known) / _SMALL_PART
        large = sorted((b for b in known if b.size > least), key=lambda b: -b.size)
        return [
            b if b.op in self._inputs else dataclasses.replace(b, source=self._sources[b.op])
            for b in large[:_MOST_BUFFERS]
        ]
