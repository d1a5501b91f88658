"""Which outputs of an operation share an input's memory, as the kernels of TensorFlow have it.

That may depend on shapes and on arguments. Where they are not known before a step, no memory is
taken to be shared.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

NodeDef = Any  # tf.compat.v1.NodeDef
Shape = tuple[int, ...] | None
"""The shape of a tensor; None for one that is not fully known."""

SAME = frozenset(
    {
        *("CheckNumerics", "Copy", "EnsureShape", "GuaranteeConst", "Identity", "IdentityN"),
        *("PlaceholderWithDefault", "PreventGradient", "Print", "StopGradient"),
    }
)
"""Operations whose first output is the first input; of `IdentityN`, each is."""
_ALIGNMENT = 64
"""Bytes: a kernel shares rows only if each that it may share begins at a multiple."""


@dataclasses.dataclass(frozen=True)
class _Output:
    """An output whose operation may share the memory of an input.

    Attributes:
      node: its operation.
      place: of the output.
      source: shape of the input.
      shapes: of all outputs.
      arguments: values of all inputs; None for those that are no constants.
    """

    node: NodeDef
    place: int
    source: tuple[int, ...]
    shapes: Sequence[tuple[int, ...]]
    arguments: Sequence[np.ndarray | None]

    def has(self, mask: str, place: int) -> bool:
        return bool(self.node.attr[f"{mask}_mask"].i >> place & 1)

    def aligned(self, elements: Iterable[int]) -> bool:
        size = tf.as_dtype(self.node.attr["T"].type).size
        return not any(each * size % _ALIGNMENT for each in elements)


def shared_input(node: NodeDef) -> int:
    """The place of the input whose memory the outputs of a node may share."""
    return 1 if node.op == "Split" else 0


def begin(
    node: NodeDef,
    place: int,
    source: Shape,
    shapes: Sequence[Shape],
    constants: Mapping[str, np.ndarray],
) -> int | None:
    """The element of its input with which an output begins; None if it shares no memory.

    Args:
      source: shape of the input.
      shapes: of all outputs.
      constants: values of outputs of other nodes, as nodes name them.
    """
    if node.op in _WHOLE:
        return 0
    rule = _RULES.get(node.op)
    known = [each for each in shapes if each is not None]
    if rule is None or source is None or len(known) <= place or len(known) < len(shapes):
        return None
    arguments = [constants.get(each) for each in node.input]
    return rule(_Output(node, place, source, known, arguments))


def _as_large(output: _Output) -> int | None:
    return 0 if math.prod(output.shapes[0]) == math.prod(output.source) else None


def _of_same_shape(output: _Output) -> int | None:
    return 0 if output.shapes[0] == output.source else None


def _only_one(output: _Output) -> int | None:
    return 0 if output.node.attr["N"].i == 1 else None


def _transposed(output: _Output) -> int | None:
    """Shared if all dimensions but those of size 1 keep their order."""
    order = output.arguments[1]
    if order is None:
        return None
    moved = [each for each in order if output.source[each] != 1]
    return 0 if moved == sorted(moved) else None


def _part(output: _Output) -> int | None:
    """One of several outputs that divide the input: shared if they are rows of it."""
    node, source = output.node, output.source
    if node.op == "Unpack":
        by_rows = node.attr["axis"].i in (0, -len(source))
    elif len(output.shapes) == 1:
        return 0
    else:
        by_rows = output.shapes[0][1:] == source[1:]
    begins = [0, *itertools.accumulate(map(math.prod, output.shapes))]
    checked = begins if source[1:] == () and node.op == "SplitV" else [math.prod(source[1:])]
    return begins[output.place] if by_rows and output.aligned(checked) else None


def _slice(output: _Output) -> int | None:
    begins = output.arguments[1]
    if begins is None:
        return None
    sizes = output.shapes[0]
    return _taken(output, [range(b, b + n) for b, n in zip(begins, sizes, strict=True)])


def _strided_slice(output: _Output) -> int | None:
    begins, ends, strides = output.arguments[1:4]
    if begins is None or ends is None or strides is None:
        return None
    count = len(begins)
    taken: list[range] = []
    for i in range(count):
        rest = output.source[len(taken) :]
        if output.has("ellipsis", i):
            later = sum(not output.has("new_axis", j) for j in range(i + 1, count))
            taken += map(range, rest[: len(rest) - later])
        elif output.has("shrink_axis", i) and not output.has("new_axis", i):
            taken.append(range(rest[0])[begins[i] : begins[i] + 1 or None])
        elif not output.has("new_axis", i):
            first = None if output.has("begin", i) else begins[i]
            last = None if output.has("end", i) else ends[i]
            taken.append(range(rest[0])[first : last : strides[i]])
    return _taken(output, [*taken, *map(range, output.source[len(taken) :])])


def _taken(output: _Output, taken: Sequence[range]) -> int | None:
    """Where a slice begins that takes some indices of each dimension."""
    pairs = zip(taken, output.source, strict=True)
    whole = [(each.start, each.stop, each.step) == (0, size, 1) for each, size in pairs]
    if all(whole):
        return 0
    rows = taken[0]
    if rows.step != 1 or not all(whole[1:]):
        return None
    row = math.prod(output.source[1:])
    checked = [rows.start, rows.stop] if len(taken) == 1 else [row]
    return rows.start * row if output.aligned(checked) else None


_WHOLE = frozenset({"Bitcast", "ExpandDims", "Reshape", "Squeeze"})
_RULES: dict[str, Callable[[_Output], int | None]] = {
    **dict.fromkeys(("Max", "Mean", "Min", "Prod", "Sum"), _as_large),
    **dict.fromkeys(("BroadcastTo", "MirrorPad", "Pad", "PadV2", "Tile"), _of_same_shape),
    **dict.fromkeys(("AddN", "Pack"), _only_one),
    **dict.fromkeys(("Split", "SplitV", "Unpack"), _part),
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "Transpose": _transposed,
}
