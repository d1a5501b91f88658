"""Expressions of Keras for operations of TensorFlow: the rules that the table `operations` names.

A rule takes a node and the texts of its inputs, and returns the text of its value; for an operation
with several outputs, the text of a tuple or list.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tpu_estimator_compat.tools.to_keras.graph import SIZES, Code, Node, Value
from tpu_estimator_compat.tools.to_keras.literals import argument, infix, literal, primary

Rule = Callable[[Node, list[str]], str]
SEED = "self.seed_generator"
"""The attribute for a `keras.random.SeedGenerator` that expressions of random numbers use."""


class UnknownOperationError(ValueError):
    """An operation that has no form in Keras."""


def called(name: str, *arguments: str, **options: Any) -> str:
    """`ops.name(arguments, options)`, without options that are None."""
    given = [f"{k}={literal(v)}" for k, v in options.items() if v is not None]
    module = "" if "." in name else "ops."
    return f"{module}{name}({', '.join([*arguments, *given])})"


def function(name: str) -> Rule:
    """A function of Keras that takes the operation's inputs."""
    return form(f"ops.{name}({{all}})")


def form(text: str) -> Rule:
    """Text with fields, which an operation fills.

    `{x0}` is its first input, `{a0}` the same as a Python value if constant, `{c0}` the number that
    it has to be, `{all}` are all inputs, and another name is an attribute.
    """
    return lambda node, texts: text.format_map(_Fields(node, texts))


class _Fields(dict[str, str]):
    def __init__(self, node: Node, texts: list[str]):
        super().__init__(all=", ".join(texts), dtype=literal(node.outputs[0].dtype))
        self._node, self._texts = node, texts

    def __missing__(self, name: str) -> str:
        kind, place = name[0], name[1:]
        if not re.fullmatch(r"-?\d+", place):
            return literal(self._node.attrs[name])
        if kind == "c":
            return literal(python(self._node, int(place)).item())
        text = self._texts[int(place)]
        return argument(self._node.inputs[int(place)], text) if kind == "a" else text


def operator(operator: str) -> Rule:
    return lambda node, texts: infix(texts[0], operator, texts[1])


def reduction(node: Node, texts: list[str]) -> str:
    axes, rank, name = python(node, 1), node.inputs[0].rank, node.kind.lower()
    axis: Any = tuple(sorted(int(a) % rank if rank else int(a) for a in np.atleast_1d(axes)))
    keeps = bool(node.attrs.get("keep_dims"))
    if rank is not None and len(axis) == rank and not keeps:
        return called(name, texts[0])
    if len(axis) == 1:
        axis = axis[0] - rank if rank and axis[0] == rank - 1 else axis[0]
    return called(name, texts[0], axis=axis, keepdims=True if keeps else None)


def python(node: Node, index: int) -> np.ndarray:
    """An input that Keras wants as a Python value."""
    array = node.inputs[index].constant
    if array is None:
        raise UnknownOperationError(f"input {index} is computed; Keras needs a constant")
    return array


def _number(node: Node, index: int) -> int:
    return int(python(node, index))


def bias_add(node: Node, texts: list[str]) -> str:
    bias, rank = texts[1], node.inputs[0].rank or 0
    if node.attrs.get("data_format") == "NCHW" and rank > 2:
        bias = called("reshape", bias, literal((-1, *[1] * (rank - 2))))
    return infix(texts[0], "+", bias)


def divide(node: Node, texts: list[str]) -> str:
    if "int" in node.inputs[0].dtype:
        raise UnknownOperationError("a division of integers that rounds towards zero")
    return infix(texts[0], "/", texts[1])


def matmul(node: Node, texts: list[str]) -> str:
    sides = []
    for i, names in enumerate((("transpose_a", "adj_x"), ("transpose_b", "adj_y"))):
        turned = any(node.attrs.get(name) for name in names)
        simple = node.inputs[i].rank == 2
        turn = called("transpose", texts[i]) if simple else called("swapaxes", texts[i], "-1", "-2")
        sides.append(turn if turned else texts[i])
    return called("matmul", *sides)


def full(node: Node, texts: list[str]) -> str:
    return called(
        "full", argument(node.inputs[0], texts[0]), texts[1], dtype=dtype_of(node.outputs[0])
    )


def dtype_of(value: Value, *defaults: str) -> str | None:
    """A value's dtype where it is none of those that Keras gives anyway."""
    return None if value.dtype in ("float32", *defaults) else value.dtype


def sizes(node: Node, texts: list[str]) -> str:
    left = iter(texts)
    sizes = [next(left) if size is None else str(size) for size in node.attrs["sizes"]]
    return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"


def squeeze(node: Node, texts: list[str]) -> str:
    first, *more = node.attrs["squeeze_dims"] or [None]
    return called("squeeze", texts[0], axis=(first, *more) if more else first)


def arange(node: Node, texts: list[str]) -> str:
    given = texts[1:2] if (texts[0], texts[2]) == ("0", "1") else texts
    return called("arange", *given, dtype=dtype_of(node.outputs[0], "int32"))


def stack(node: Node, texts: list[str]) -> str:
    return called("stack", f"[{', '.join(texts)}]", axis=node.attrs["axis"] or None)


def concatenate(node: Node, texts: list[str]) -> str:
    return called("concatenate", f"[{', '.join(texts[:-1])}]", axis=_number(node, -1))


def split(node: Node, texts: list[str]) -> str:
    if node.kind == "Split":
        return called("split", texts[1], str(node.attrs["num_split"]), axis=_number(node, 0))
    sizes = python(node, 1)
    if (sizes[:-1] < 0).any():
        raise UnknownOperationError("a part's size is what is left over")
    ends = tuple(int(x) for x in np.cumsum(sizes)[:-1])
    return called("split", texts[0], literal(list(ends)), axis=_number(node, 2))


def one_hot(node: Node, texts: list[str]) -> str:
    depth, (on, off) = argument(node.inputs[1], texts[1]), (python(node, i) for i in (2, 3))
    axis = node.attrs.get("axis", -1)
    options = {"axis": None if axis == -1 else axis, "dtype": dtype_of(node.outputs[0])}
    made = called("one_hot", texts[0], depth, **options)
    if (on, off) == (1, 0):
        return made
    return infix(literal(off), "+", infix(literal(on - off), "*", made))


def take(node: Node, texts: list[str]) -> str:
    axis, (given, index), several = _number(node, 2), node.inputs[:2], node.attrs.get("batch_dims")
    if not several:
        return called("take", texts[0], texts[1], axis=axis)
    if axis != several or not given.rank or index.rank != axis + 1:
        raise UnknownOperationError("it gathers slices by batch dimensions")
    more = given.rank - index.rank
    text = f"{primary(texts[1])}[..., {', '.join(['None'] * more)}]" if more else texts[1]
    return called("take_along_axis", texts[0], text, axis=axis)


def gather_nd(node: Node, texts: list[str]) -> str:
    """Of the first dimensions, as a gather of rows by their number."""
    shape, depth = node.inputs[0].shape, (node.inputs[1].shape or (None,))[-1]
    if shape is None or depth is None or None in shape[1:depth] or depth == 0:
        raise UnknownOperationError("the sizes of the gathered dimensions are not known")
    parts = [f"{primary(texts[1])}[..., {i}]" for i in range(depth)]
    index = parts[0]
    for size, part in zip(shape[1:depth], parts[1:], strict=True):
        index = infix(infix(index, "*", str(size)), "+", part)
    known = [n for n in shape[:depth] if n is not None]
    first = math.prod(known) if len(known) == depth and None in shape[depth:] else -1
    sizes = (first, *(-1 if n is None else n for n in shape[depth:]))
    if sizes.count(-1) > 1:
        raise UnknownOperationError("the sizes of a gathered row are not known")
    given = texts[0] if depth == 1 else called("reshape", texts[0], literal(sizes))
    return called("take", given, index, axis=0)


def sliced(node: Node, texts: list[str]) -> str:
    ranges = zip(python(node, 1), python(node, 2), strict=True)
    return _indexed(texts[0], [f"{b or ''}:{'' if s < 0 else b + s}" for b, s in ranges])


def _indexed(text: str, parts: list[str]) -> str:
    while len(parts) > 1 and parts[-1] == ":" and "..." not in parts:
        parts = parts[:-1]
    return f"{primary(text)}[{', '.join(parts)}]"


def strided_slice(node: Node, texts: list[str]) -> str:
    masks = {m: node.attrs[f"{m}_mask"] for m in ("begin", "end", "ellipsis", "new_axis")}
    masks["shrink"] = node.attrs["shrink_axis_mask"]
    ends = [_places(node, i, texts[i]) for i in (1, 2, 3)]
    parts = []
    for i, (begin, end, step) in enumerate(zip(*ends, strict=True)):
        has = {mask: bool(bits >> i & 1) for mask, bits in masks.items()}
        if has["ellipsis"]:
            parts.append("...")
        elif has["new_axis"]:
            parts.append("None")
        elif has["shrink"]:
            parts.append(begin)
        else:
            first, last = has["begin"] or begin == "0", has["end"]
            texts_of_range = ["" if first else begin, "" if last else end, step]
            parts.append(":".join(texts_of_range[: 2 + (step != "1")]))
    return _indexed(texts[0], parts)


def _places(node: Node, index: int, text: str) -> list[str]:
    """The texts of a vector's elements: of begins, ends or steps."""
    value = node.inputs[index]
    if value.constant is not None:
        return [str(int(x)) for x in value.constant]
    if value.node.kind == SIZES and text.startswith("("):
        elements = ast.parse(text, mode="eval").body.elts  # type: ignore[attr-defined]
        return [ast.get_source_segment(text, each) or "" for each in elements]
    raise UnknownOperationError("the bounds of a slice are computed")


def where(node: Node, texts: list[str]) -> str:
    condition, given = node.inputs[0], node.inputs[1]
    text = texts[0]
    if node.kind == "Select" and condition.rank == 1 and given.rank and given.rank > 1:
        text = called("reshape", text, literal((-1, *[1] * (given.rank - 1))))
    return called("where", text, *texts[1:])


def band_part(node: Node, texts: list[str]) -> str:
    lower, upper = _number(node, 1), _number(node, 2)
    if (lower < 0) == (upper < 0):
        raise UnknownOperationError("a band with two bounds")
    name, k = ("tril", upper) if lower < 0 else ("triu", -lower)
    return called(name, texts[0], k=k or None)


def pad(node: Node, texts: list[str]) -> str:
    widths = tuple(tuple(int(x) for x in row) for row in python(node, 1))
    options: dict[str, Any] = {}
    if node.kind == "MirrorPad":
        options["mode"] = node.attrs["mode"].lower()
    elif texts[2:] and texts[2] not in ("0.0", "0"):
        options["constant_values"] = Code(texts[2])
    return called("pad", texts[0], literal(widths), **options)


def running(node: Node, texts: list[str]) -> str:
    """A cumulative sum or product."""
    axis, rank, name = _number(node, 1), node.inputs[0].rank, node.kind.lower()
    turned = bool(node.attrs["reverse"])
    given = called("flip", texts[0], axis=axis) if turned else texts[0]
    if node.attrs["exclusive"]:
        if not rank:
            raise UnknownOperationError("the rank is not known")
        axis %= rank
        widths = tuple((int(i == axis), 0) for i in range(rank))
        first = None if name == "cumsum" else 1
        padded = called("pad", given, literal(widths), constant_values=first)
        given = _indexed(padded, [":"] * axis + [":-1"])
    made = called(name, given, axis=axis)
    return called("flip", made, axis=axis) if turned else made


def random(name: str) -> Rule:
    def rule(node: Node, texts: list[str]) -> str:
        shape, dtype = argument(node.inputs[0], texts[0]), dtype_of(node.outputs[0])
        return called(f"keras.random.{name}", shape, dtype=dtype, seed=Code(SEED))

    return rule


def diagonal(node: Node, texts: list[str]) -> str:
    """The main diagonal of matrices: taken, set, or with zeros around it."""
    numbers = [int(python(node, i)) for i, v in enumerate(node.inputs) if i and v.rank == 0]
    wanted = [0, -1, -1] if node.kind.startswith("MatrixDiagV") else [0]
    if any(n != m for n, m in zip(numbers, wanted, strict=False)):
        raise UnknownOperationError("another diagonal than the main one")
    if "Part" in node.kind:
        return called("diagonal", texts[0], axis1=-2, axis2=-1)
    rows, size = (node.outputs[0].shape or (None,))[-2:]
    if size is None or rows != size:
        raise UnknownOperationError("the size of the matrices is not known, or not square")
    given, others = (texts[1], texts[0]) if "Set" in node.kind else (texts[0], "0")
    main = f'ops.eye({size}, dtype="bool")'
    return called("where", main, f"{primary(given)}[..., None]", others)


def reverse_sequence(node: Node, texts: list[str]) -> str:
    if (node.attrs["seq_dim"], node.attrs["batch_dim"]) != (1, 0):
        raise UnknownOperationError("another axis than the second one")
    return f"reverse_sequence({', '.join(texts)})"


def resize(kind: str) -> Rule:
    def rule(node: Node, texts: list[str]) -> str:
        size, (_, *old, _) = tuple(python(node, 1).tolist()), node.inputs[0].shape or (None,) * 4
        corners, centers = (node.attrs[k] for k in ("align_corners", "half_pixel_centers"))
        if "float" not in node.inputs[0].dtype:
            raise UnknownOperationError("an image of integers")
        whole = not any(n is None or m % n for m, n in zip(size, old, strict=True))
        if kind == "nearest" and whole and not corners:
            for axis, (new, before) in enumerate(zip(size, old, strict=True), 1):
                texts[0] = called("repeat", texts[0], str(new // before), axis=axis)
            return texts[0]
        if centers:
            return called("ops.image.resize", texts[0], literal(size), interpolation=kind)
        if kind != "bilinear" or None in old:
            raise UnknownOperationError("it takes no centers of pixels")
        return f"resize_bilinear({texts[0]}, {literal(size)}, align_corners={corners})"

    return rule


def patches(node: Node, texts: list[str]) -> str:
    size, strides, rates = (tuple(node.attrs[k][1:3]) for k in ("ksizes", "strides", "rates"))
    if max(strides) > 1 and max(rates) > 1:
        raise UnknownOperationError("strides and rates at once")
    return called(
        "ops.image.extract_patches",
        texts[0],
        literal(size),
        strides=strides,
        dilation_rate=None if rates == (1, 1) else rates,
        padding=node.attrs["padding"].lower(),
    )
