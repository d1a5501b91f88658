"""Finds the outputs of an operation that share an input's memory in TensorFlow's kernels.

Where shapes or arguments decide it, and are unknown before a step, no output counts.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

NodeDef = Any  # tf.compat.v1.NodeDef
Shape = tuple[int, ...] | None  # None for one that is not fully known

SAME = frozenset(
    {
        *("CheckNumerics", "Copy", "EnsureShape", "GuaranteeConst", "Identity", "IdentityN"),
        *("PlaceholderWithDefault", "PreventGradient", "Print", "StopGradient"),
    }
)
"""Operations whose first output is the first input; of `IdentityN`, each output is its input."""
_WHOLE = frozenset({"Bitcast", "ExpandDims", "Reshape", "Squeeze"})
_ALIGNMENT = 64
"""Bytes: kernels share rows only if a row's size (a vector's begin and end) is a multiple."""


@dataclasses.dataclass(frozen=True)
class _Use:
    node: NodeDef
    source: tuple[int, ...]
    shapes: Sequence[tuple[int, ...]]
    arguments: Sequence[np.ndarray | None]


def shared_input(node: NodeDef) -> int:
    """The index of the input whose memory the outputs of a node may share."""
    return 1 if node.op == "Split" else 0


def may_share(node: NodeDef) -> bool:
    """Whether outputs of a node share an input's memory for some shapes and arguments."""
    return node.op in _WHOLE or node.op in _WHOLE_IF or node.op in _ROWS


def begins(
    node: NodeDef, source: Shape, shapes: Sequence[Shape], arguments: Sequence[np.ndarray | None]
) -> list[int]:
    """Indices of the input's elements with which the outputs begin; empty if they share none.

    Args:
      source, shapes: the shapes of the input, and of the outputs.
      arguments: the values of all inputs; None for inputs that are no constants.
    """
    if node.op in _WHOLE:
        return [0]
    known = [shape for shape in shapes if shape is not None]
    if source is None or not known or len(known) < len(shapes):
        return []
    use = _Use(node, source, known, arguments)
    if node.op in _WHOLE_IF and _WHOLE_IF[node.op](use):
        return [0]
    rows = _ROWS[node.op](use) if node.op in _ROWS else []
    row = math.prod(source[1:])
    if [len(each) * row for each in rows] != [math.prod(shape) for shape in known]:
        return []
    spans = [row] if len(source) > 1 else [n for each in rows for n in (each.start, each.stop)]
    size = tf.as_dtype(node.attr["T"].type).size
    aligned = all(each * size % _ALIGNMENT == 0 for each in spans)
    return [each.start * row for each in rows] if aligned else []


def _as_large(use: _Use) -> bool:
    return math.prod(use.shapes[0]) == math.prod(use.source)


def _all_in_steps_of_one(use: _Use) -> bool:
    strides = use.arguments[3]
    return _as_large(use) and strides is not None and bool(np.all(strides == 1))


def _in_order(use: _Use) -> bool:
    """Whether all dimensions but those of size 1 keep their order."""
    order = use.arguments[1]
    moved = [] if order is None else [each for each in order if use.source[each] != 1]
    return order is not None and moved == sorted(moved)


def _split(use: _Use) -> list[range]:
    ends = list(itertools.accumulate(shape[0] for shape in use.shapes))
    single = use.node.op == "Split" and len(use.source) == 1
    return [] if single else [range(*span) for span in zip([0, *ends], ends, strict=False)]


def _unpack(use: _Use) -> list[range]:
    by_rows = len(use.source) > 1 and use.node.attr["axis"].i in (0, -len(use.source))
    return [range(i, i + 1) for i in range(len(use.shapes))] if by_rows else []


def _slice(use: _Use) -> list[range]:
    first = use.arguments[1]
    return [] if first is None else [range(first[0], first[0] + use.shapes[0][0])]


def _strided_slice(use: _Use) -> list[range]:
    first, last, strides = use.arguments[1:4]
    if first is None or last is None or strides is None or any(strides != 1):
        return []
    begin, end, new, ellipsis, shrink = (
        use.node.attr[f"{mask}_mask"].i
        for mask in ("begin", "end", "new_axis", "ellipsis", "shrink_axis")
    )
    i = next((i for i in range(len(first)) if not new >> i & 1), None)
    if i is None or ellipsis >> i & 1:
        return []
    stop = first[i] + 1 or None if shrink >> i & 1 else None if end >> i & 1 else last[i]
    return [range(use.source[0])[None if begin >> i & 1 else first[i] : stop]]


_WHOLE_IF: dict[str, Callable[[_Use], bool]] = {
    **dict.fromkeys(("Max", "Mean", "Min", "Pack", "Prod", "Sum"), _as_large),
    **dict.fromkeys(("Slice", "Split", "SplitV"), _as_large),
    **dict.fromkeys(
        ("BroadcastTo", "MirrorPad", "Pad", "PadV2", "Tile"),
        lambda use: use.shapes[0] == use.source,
    ),
    "AddN": lambda use: bool(use.node.attr["N"].i == 1),
    "StridedSlice": _all_in_steps_of_one,
    "Transpose": _in_order,
}
_ROWS: dict[str, Callable[[_Use], list[range]]] = {
    **{"Slice": _slice, "Split": _split, "SplitV": _split},
    **{"StridedSlice": _strided_slice, "Unpack": _unpack},
}
"""The rows of the input that each output takes, if it takes rows."""
